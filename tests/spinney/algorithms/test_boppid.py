"""BOPPID, the comparator of the publication."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from spinney.algorithms.boppid import Boosted, BoppidSite, boost, influence
from spinney.choice.metrics import auroc
from spinney.errors import Refused, TreeRefused
from spinney.federation.forest_site import rounding_of
from spinney.federation.messages import GrownForest
from spinney.forest.codec import TreeLimits
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.rows.parts import Part
from spinney.trial.simulate import simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study


def boppid(**sections):
    words = {"algorithm": {"name": "boppid"}, "forest": {"trees": 12}}
    return study(**{name: {**words.get(name, {}), **sections.get(name, {})} for name in {**words, **sections}})


ABSTAIN = {"absent": "abstain"}


@pytest.fixture(scope="module")
def finished():
    wood = boppid()
    federation = Wood(wood, cohorts(wood))
    federation.digest = federation.run()
    return federation


# ---------------------------------------------------------------------------------------------------------------
# Who counts how much


def test_influence_is_the_share_of_rows_with_a_bounded_lead_of_the_own_model():
    # lambda: ash 0.2, beech 0.3, cedar 0.5, so lambda_max^2 = 0.25 and 0.25 / 0.2 = 1.25, rounded up to 2
    # sigma of ash = 0.2 / 0.25 * 2 = 1.6, so ash counts 1.6 * 0.2 = 0.32
    factors = influence("ash", ["ash", "beech", "cedar"], {"ash": 100, "beech": 150, "cedar": 250})
    assert factors == pytest.approx({"ash": 0.32, "beech": 0.3, "cedar": 0.5})


def test_the_largest_site_leads_by_as_much_as_the_smallest_is_smaller():
    # lambda_max^2 / lambda_min = 0.64 / 0.2 = 3.2, rounded up to 4; sigma of ash = 0.8 / 0.64 * 4 = 5
    factors = influence("ash", ["ash", "beech"], {"ash": 800, "beech": 200})
    assert factors == pytest.approx({"ash": 4.0, "beech": 0.2})


def test_a_site_that_keeps_only_itself_has_all_the_say():
    assert influence("ash", ["ash"], {"ash": 70, "beech": 30}) == {"ash": 1.0}


def test_sites_like_this_one_are_kept(finished):
    assert {*finished.outcomes["ash"].model.owners_} == {*SITES}


class KnowsNothing(BoppidSite):
    """A site whose own model says no to everybody."""

    def boosted(self) -> bytes:
        always_no = Forest(np.array([LEAF], np.int16), np.zeros(1), np.zeros(1, bool), np.zeros(1))
        self.house.memory["boosted"] = Boosted(always_no, np.ones(1)).pack(self.rounding)
        return self.house.memory["boosted"]


@pytest.mark.parametrize(("theta", "kept"), [(0.1, {"elm"}), (1.0, {*SITES})])
def test_a_model_that_is_better_here_by_more_than_theta_is_left_out_as_printed_in_the_source(theta, kept):
    wood = boppid(algorithm={"theta": theta})
    federation = Wood(wood, cohorts(wood), parts={"elm": KnowsNothing})
    federation.run()
    assert {*federation.outcomes["elm"].model.owners_} == kept


# ---------------------------------------------------------------------------------------------------------------
# Boosting


def boosted(people, wood) -> Boosted:
    return boost(people.rows(Part.TRAINING), wood, rounding_of(wood, people), 0)


def test_boosted_stumps_rank_as_scikit_learn_s_adaboost_does():
    wood = boppid()
    people = cohort(wood, 400)
    training, test = people.rows(Part.TRAINING), people.rows(Part.TEST)
    mine = boosted(people, wood)
    stump = DecisionTreeClassifier(max_depth=1, min_samples_leaf=5)
    theirs = AdaBoostClassifier(stump, n_estimators=12, random_state=0).fit(training.X, training.y)
    votes = Walker(mine.stumps, 4).votes(test.X) @ mine.alphas
    assert auroc(test.y, votes) == pytest.approx(auroc(test.y, theirs.decision_function(test.X)), abs=0.03)


def test_missing_values_are_boosted_too():
    wood = boppid()
    people = cohorts(wood, rows=240)
    holes = np.random.default_rng(1).random((240, 4)) < 0.2
    people = {name: replace(one, X=np.where(holes, np.float32(np.nan), one.X)) for name, one in people.items()}
    outcome = simulate(wood, people).outcomes["ash"]
    assert outcome.auroc["boppid"].value > 0.75


def test_a_site_with_one_class_still_has_a_stump():
    wood = boppid()
    people = cohort(wood)
    healthy = replace(people, y=np.zeros_like(people.y))
    assert len(boosted(healthy, wood).stumps) == 1


def test_a_side_of_a_stump_with_too_few_patients_is_not_told_apart():
    wood = boppid(privacy={"smallest_leaf": 30})
    people = cohort(wood, 80)
    mine = boosted(people, wood)
    training = people.rows(Part.TRAINING)
    for stump in mine.stumps:
        if len(stump.feature) == 3:
            left = training.X[:, stump.feature[0]] <= stump.threshold[0]
            assert min(left.sum(), (~left).sum()) >= 30


def test_copies_of_a_stump_travel_once_with_the_sum_of_their_weights():
    wood = boppid()
    mine = boosted(cohort(wood, 60, concept=(9, 0, 0, 0)), wood)
    assert len({*mine.stumps.digests}) == len(mine.stumps) == len(mine.alphas)
    assert np.all(mine.alphas > 0)


def test_packed_stumps_come_out_as_they_went_in():
    wood = boppid()
    people = cohort(wood)
    mine, rounding = boosted(people, wood), rounding_of(wood, people)
    again = Boosted.unpack(mine.pack(rounding), rounding, TreeLimits(trees=12, depth=1))
    assert again.stumps.digests == mine.stumps.digests
    assert again.alphas == pytest.approx(mine.alphas, abs=5e-4)


@pytest.mark.parametrize("damage", [lambda _: b"", lambda data: data[:7], lambda data: b"\xff" * 4 + data[4:]])
def test_damaged_weights_are_refused(damage):
    wood = boppid()
    people = cohort(wood)
    rounding = rounding_of(wood, people)
    with pytest.raises(TreeRefused):
        Boosted.unpack(damage(boosted(people, wood).pack(rounding)), rounding, TreeLimits(trees=12, depth=1))


# ---------------------------------------------------------------------------------------------------------------
# A round


def test_boppid_has_no_common_model(finished):
    assert finished.digest == ""


def test_an_outcome_compares_the_own_boosted_stumps_with_the_combined_ones(finished):
    outcome = finished.outcomes["elm"]
    assert set(outcome.auroc) == {"local", "boppid", "chosen"}
    assert outcome.decision.name == "boppid"
    assert outcome.auroc["boppid"].value > 0.8


def test_the_models_of_boppid_are_the_same_for_any_number_of_workers(finished):
    wood = boppid()
    again = simulate(wood, cohorts(wood), workers=3)
    assert {name: one.model.digest for name, one in again.outcomes.items()} == {
        name: one.model.digest for name, one in finished.outcomes.items()
    }


def test_a_damaged_model_costs_its_sender_and_not_the_round():
    class Cheat(BoppidSite):
        def boost(self, order):
            super().boost(order)
            return GrownForest(self.house.mail.post(b"not stumps at all", order.peers), "0" * 64)

    wood = boppid()
    federation = Wood(wood, cohorts(wood), parts={"elm": Cheat})
    federation.run()
    assert {*federation.outcomes["ash"].model.owners_} == {"ash", "beech", "cedar"}
    assert "elm" in federation.outcomes["elm"].model.owners_


def test_stumps_on_a_column_that_a_site_does_not_have_may_abstain_there():
    wood = boppid(forest=ABSTAIN)
    federation = Wood(wood, {**cohorts(wood), "elm": cohort(wood, seed=3, absent=(0,))})
    federation.run()
    assert 0 not in federation.outcomes["elm"].model.forest_.feature
    assert 0 in federation.outcomes["ash"].model.forest_.feature


def test_they_do_not_count_in_the_error_that_decides_who_is_kept_either():
    wood = boppid(forest=ABSTAIN)
    elm = cohort(wood, absent=(0,), concept=(0, 9, 0, 0))
    site = Wood(wood, {"elm": elm}).site("elm")
    stumps = [
        Forest(
            np.array([column, LEAF, LEAF], np.int16), np.array([0.5, 0, 0]), np.zeros(3, bool), np.array([0, 0.0, 1])
        )
        for column in (0, 1)
    ]
    assert (
        site._error(Boosted(join_forests(stumps), np.array([5.0, 1.0])))
        == site._error(Boosted(stumps[1], np.ones(1)))
        < 0.2
    )


def test_a_site_that_has_declined_does_not_boost(finished):
    wood = boppid()
    federation = Wood(wood, {**cohorts(wood), "elm": cohort(wood, 30)})
    federation.run()
    with pytest.raises(Refused, match="too early"):
        federation.site("elm").answer("boost", finished.order("boost"))
