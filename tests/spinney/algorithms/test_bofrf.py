"""BOFRF from end to end: a federation that a reader can compute by hand, and what never changes the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.forest import codec
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest
from spinney.rows.cohort import Cohort
from spinney.rows.encode import columns_of
from spinney.rows.parts import Part
from spinney.trial.simulate import simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study

MODES = ("masked", "ring", "trusted-third-party")

# ---------------------------------------------------------------------------------------------------------------
# A federation to follow with a pencil: three sites of twelve patients, six ill (first) and six well (last). Each site
# has one stump: "yes where the feature is above one half".
#
#                    ill               well              x0: tp fn tn fp    x1: tp fn tn fp
PATIENTS = {
    "ash": {"x0": "111110 000011", "x1": "111000 000111"},  #   5  1  4  2         3  3  3  3
    "beech": {"x0": "111100 000001", "x1": "110000 000011"},  # 4  2  5  1         2  4  4  2
    "cedar": {"x0": "111000 000000", "x1": "111100 001111"},  # 3  3  6  0         4  2  2  4
}  #                                            together      12  6 15  3         9  9  9  9
# G(x0) = (12 * 15 - 3 * 6) / sqrt(15 * 18 * 18 * 21) = 162 / 319.47 =  0.507
# G(x1) = (9 * 9 - 9 * 9) / sqrt(18 * 18 * 18 * 18)   =   0 / 324    =  0
# Cedar's own stump says 0.6 or 0.9: yes to everybody, so tn = fn = 0 and G is 0 because its denominator is 0.


MIDDLE = 0.5 + 1 / 512  # the middle one of the study's 64 cuts


def stump(feature: int, low: float, high: float) -> Forest:
    return Forest(
        np.array([feature, LEAF, LEAF], np.int16),
        np.array([MIDDLE, 0, 0]),
        np.zeros(3, bool),
        np.array([0, low, high]),
    )


STUMPS = {"ash": stump(0, 0.1, 0.9), "beech": stump(1, 0.2, 0.8), "cedar": stump(2, 0.6, 0.9)}


class StumpSite(BofrfSite):
    """Sends a stump that was thought out instead of grown; `seen` patients count as those that it was grown on."""

    seen: tuple[int, ...] = ()

    def grown(self) -> bytes:
        house = self.house
        house.memory["forest"] = codec.pack_forest(STUMPS[house.name], self.rounding)
        unseen = np.ones((len(self.training), 1), dtype=bool)
        unseen[list(self.seen)] = False
        house.memory["unseen"] = unseen
        return house.memory["forest"]


class GrownOnTwo(StumpSite):
    seen = (0, 6)  # the first who is ill and the first who is well


def pencil_study(**sections):
    return study(
        forest={"trees": 1, **sections.pop("forest", {})},
        privacy={"smallest_cohort": 10, "largest_share": 1, **sections.pop("privacy", {})},
        **sections,
    )


def pencil_cohort(wood, x0: str, x1: str, absent: int | None = None) -> Cohort:
    X = np.full((12, len(wood.features)), 0.0, dtype=np.float32)
    for place, bits in enumerate((x0, x1)):
        X[:, place] = [int(bit) for bit in bits.replace(" ", "")]
    present = np.arange(X.shape[1]) != absent
    X[:, ~present] = np.nan
    y = np.array([1] * 6 + [0] * 6, dtype=np.int8)
    return Cohort(columns_of(wood.features), present, X, y, np.arange(12), np.full(12, Part.TRAINING, dtype=np.int8))


def pencil_federation(wood, part=StumpSite, **kwargs) -> Wood:
    people = {name: pencil_cohort(wood, **rows) for name, rows in PATIENTS.items()}
    return Wood(wood, people, parts=dict.fromkeys(people, part), **kwargs)


@pytest.mark.parametrize("mode", MODES)
def test_summed_counts_give_the_weights_that_a_pencil_gives(mode):
    federation = pencil_federation(pencil_study(privacy={"secure_sum": mode}))
    federation.run()
    order = federation.order("finish")
    assert order.manifest.owners == ("ash", "beech", "cedar")
    assert order.weights.tolist() == [0.51, 0, 0]


def test_patients_that_an_own_tree_was_grown_on_do_not_count_for_it():
    # ash's stump loses one hit and one well patient at ash: tp 11, fn 6, tn 14, fp 3
    # (11 * 14 - 3 * 6) / sqrt(14 * 17 * 17 * 20) = 136 / 284.46 = 0.478
    federation = pencil_federation(pencil_study(), GrownOnTwo)
    federation.run()
    assert federation.order("finish").weights[0] == 0.48


def test_scored_on_training_rows_they_do_count():
    wood = pencil_study(algorithm={"name": "bofrf", "scoring_of_own_trees": "training"})
    federation = pencil_federation(wood, GrownOnTwo)
    federation.run()
    assert federation.order("finish").weights[0] == 0.51


def test_tempered_weights_mix_common_and_own_experience():
    # n = 12, a = 12 / 412. ash sees x0 with tp 5, fn 1, tn 4, fp 2: S = (20 - 2) / sqrt(7 * 6 * 6 * 5) = 18 / 35.50
    federation = pencil_federation(pencil_study())
    federation.run()
    a, S = 12 / 412, 18 / np.sqrt(1260)
    weights = dict(
        zip(federation.outcomes["ash"].model.owners_, federation.outcomes["ash"].model.weights_, strict=True)
    )
    assert weights["ash"] == pytest.approx(np.exp(8 * ((1 - a) * 0.51 + a * S)))
    assert weights["cedar"] == pytest.approx(1)  # exp(8 * 0)


def test_the_published_rule_keeps_what_is_above_tau():
    federation = pencil_federation(pencil_study(algorithm={"name": "bofrf", "weighting": "mcc"}))
    federation.run()
    model = federation.outcomes["beech"].model
    assert (model.owners_, model.weights_.tolist()) == (("ash",), [0.51])


def test_if_no_tree_is_above_tau_all_have_equal_votes_and_the_outcome_says_so():
    federation = pencil_federation(pencil_study(algorithm={"name": "bofrf", "weighting": "mcc", "tau": 0.6}))
    federation.run()
    outcome = federation.outcomes["beech"]
    assert outcome.model.weights_.tolist() == [1, 1, 1]
    assert "bofrf: no tree is above tau 0.6, so votes are equal" in outcome.decision.notes


def test_a_tree_may_abstain_where_its_feature_is_absent_and_counts_come_from_the_others():
    # without ash: tp 7, fn 5, tn 11, fp 1 -> (7 * 11 - 1 * 5) / sqrt(8 * 12 * 12 * 16) = 72 / 135.76 = 0.530
    wood = pencil_study(privacy={"secure_sum": "trusted-third-party"}, forest={"absent": "abstain"})
    people = {name: pencil_cohort(wood, **rows, absent=0 if name == "ash" else None) for name, rows in PATIENTS.items()}
    federation = Wood(wood, people, parts=dict.fromkeys(people, StumpSite))
    federation.run()
    assert federation.order("finish").weights[0] == 0.53
    assert "ash" not in federation.outcomes["ash"].model.owners_  # its stump has no say at home, where x0 is absent


def test_otherwise_it_is_walked_there_as_if_every_value_were_missing():
    # missing goes right, so ash says yes to everybody: tp 7 + 6, fn 5, tn 11, fp 1 + 6
    # (13 * 11 - 7 * 5) / sqrt(20 * 18 * 18 * 16) = 108 / 321.99 = 0.335
    wood = pencil_study(privacy={"secure_sum": "trusted-third-party"})
    people = {name: pencil_cohort(wood, **rows, absent=0 if name == "ash" else None) for name, rows in PATIENTS.items()}
    federation = Wood(wood, people, parts=dict.fromkeys(people, StumpSite))
    federation.run()
    assert federation.order("finish").weights[0] == 0.34
    assert "ash" in federation.outcomes["ash"].model.owners_
    assert federation.outcomes["ash"].model.absent_ == "missing"


def test_an_own_tree_that_too_few_sites_can_score_votes_at_home_by_what_home_has_seen():
    # ash sees x0 with tp 5, fn 1, tn 4, fp 2: S = 18 / sqrt(7 * 6 * 6 * 5)
    wood = pencil_study(forest={"absent": "abstain"})
    people = {name: pencil_cohort(wood, **rows, absent=None if name == "ash" else 0) for name, rows in PATIENTS.items()}
    federation = Wood(wood, people, parts=dict.fromkeys(people, StumpSite))
    federation.run()
    assert "ash" not in federation.order("finish").manifest.owners  # nobody else can walk its stump on x0
    model, S = federation.outcomes["ash"].model, 18 / np.sqrt(1260)
    weights = dict(zip(model.owners_, model.weights_, strict=True))
    assert weights["ash"] == pytest.approx(np.exp(8 * S))  # what home has seen stands for what all have seen
    assert {"beech", "cedar"} <= {*weights}


def test_where_only_silent_trees_are_above_tau_the_others_have_equal_votes():
    words = {"name": "bofrf", "weighting": "mcc"}
    privacy = {"secure_sum": "trusted-third-party"}
    wood = pencil_study(privacy=privacy, algorithm=words, forest={"absent": "abstain"})
    people = {name: pencil_cohort(wood, **rows, absent=0 if name == "ash" else None) for name, rows in PATIENTS.items()}
    federation = Wood(wood, people, parts=dict.fromkeys(people, StumpSite))
    federation.run()
    outcome = federation.outcomes["ash"]
    assert (outcome.model.owners_, outcome.model.weights_.tolist()) == (("beech", "cedar"), [1, 1])
    assert "bofrf: no tree is above tau 0.2, so votes are equal" in outcome.decision.notes


# ---------------------------------------------------------------------------------------------------------------
# What never changes the model


@pytest.fixture(scope="module")
def wood():
    return study()


@pytest.fixture(scope="module")
def people(wood):
    return cohorts(wood)


@pytest.fixture(scope="module")
def reference(wood, people):
    return simulate(wood, people)


def digests(result):
    return result.model_digest, {name: outcome.model.digest for name, outcome in result.outcomes.items()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_models_are_the_same_for_every_secure_sum_and_any_number_of_workers(people, reference, mode, workers):
    result = simulate(study(privacy={"secure_sum": mode}), people, workers=workers)
    assert digests(result) == digests(reference)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_the_order_in_which_sites_answer_does_not_matter(people, reference, mode, seed):
    federation = Wood(study(privacy={"secure_sum": mode}), dict(reversed(people.items())), shuffle=seed)
    assert federation.run() == reference.model_digest
    assert {name: outcome.model.digest for name, outcome in federation.outcomes.items()} == digests(reference)[1]


def test_another_seed_grows_another_wood(people, reference):
    assert simulate(study(split={"seed": 1}), people).model_digest != reference.model_digest


def test_another_round_grows_another_wood(wood, people, reference):
    assert simulate(wood, people, round=2).model_digest != reference.model_digest


# ---------------------------------------------------------------------------------------------------------------
# Clusters


KINDS = ("east1", "east2", "east3", "west1", "west2", "west3")


def two_kinds(wood) -> dict[str, Cohort]:
    return {name: cohort(wood, 120, seed, shift=0.4 * name.startswith("w")) for seed, name in enumerate(KINDS)}


@pytest.fixture(scope="module")
def clustered():
    wood = study(algorithm={"name": "bofrf", "clusters": 2, "distance": "manhattan"})
    federation = Wood(wood, two_kinds(wood))
    federation.run()
    return federation


def test_two_kinds_of_sites_learn_in_two_clusters(clustered):
    assert clustered.owners("east2") == {"east1", "east2", "east3"}
    assert clustered.owners("west1") == {"west1", "west2", "west3"}


def test_a_cluster_s_models_have_only_its_own_trees(clustered):
    for name, outcome in clustered.outcomes.items():
        assert {owner[:4] for owner in outcome.model.owners_} == {name[:4]}


def test_trees_are_sealed_for_the_cluster_only(clustered):
    assert clustered.order("grow", "west1").peers == ("west1", "west2", "west3")


def test_a_cluster_too_small_for_a_secure_sum_joins_its_nearest():
    wood = study(algorithm={"name": "bofrf", "clusters": 2})
    people = {name: people for name, people in two_kinds(wood).items() if name != "west3"}
    federation = Wood(wood, people)
    federation.run()
    assert federation.owners("west1") == {*people}


def test_a_first_centroid_that_declined_does_not_stop_the_clustering():
    wood = study(algorithm={"name": "bofrf", "clusters": 2, "first_centroid": "nobody"})
    federation = Wood(wood, two_kinds(wood))
    federation.run()
    assert federation.owners("east1") == {"east1", "east2", "east3"}


# ---------------------------------------------------------------------------------------------------------------
# Settings


def test_our_default_is_tempered_and_out_of_bag(wood):
    assert wood.algorithm.tempered
    assert wood.algorithm.out_of_bag


def test_the_published_preset_is_in_sample_raw_correlations_and_no_guard(people):
    wood = study(algorithm={"name": "bofrf", "preset": "published"})
    assert (wood.algorithm.tempered, wood.algorithm.out_of_bag) == (False, False)
    federation = Wood(wood, people)
    federation.run()
    for name, outcome in federation.outcomes.items():
        order = federation.order("finish", name)
        published = dict(zip(federation.trees(order.manifest), order.weights, strict=True))
        model = outcome.model
        kept = {tree: published[tree] for tree in model.forest_.digests}
        assert model.weights_.tolist() == list(kept.values())
        assert min(kept.values()) > 0.2
        assert outcome.decision.reason == "best of bofrf own trees, bofrf in cross-validation"


def test_a_word_of_the_study_beats_the_preset():
    settings = study(algorithm={"name": "bofrf", "preset": "published", "weighting": "tempered"}).algorithm
    assert (settings.tempered, settings.out_of_bag) == (True, False)


def test_in_sample_scores_flatter_own_trees(people):
    in_sample = Wood(study(algorithm={"name": "bofrf", "scoring_of_own_trees": "training"}), people)
    out_of_bag = Wood(study(), people)
    in_sample.run()
    out_of_bag.run()
    assert in_sample.order("finish").weights.mean() > out_of_bag.order("finish").weights.mean()


def test_the_four_sites_are_all_there(reference):
    assert tuple(reference.outcomes) == SITES
    assert reference.left_out == {}


def test_how_large_a_site_says_that_it_is_gives_its_trees_no_weight(wood, people):
    class Boasting(BofrfSite):
        def join(self, order):
            return replace(super().join(order), rows=100_000)

    modest, boasting = Wood(wood, people), Wood(wood, people, parts={"elm": Boasting})
    modest.run()
    boasting.run()
    assert boasting.left_out == {}
    for site in SITES:
        assert boasting.outcomes[site].model.digest == modest.outcomes[site].model.digest


def test_foreign_trees_vote_on_nothing_beyond_what_a_site_has_trained_on():
    wood = study()
    wide = cohort(wood, rows=320, seed=3)
    people = {**cohorts(wood), "elm": wide.where(wide.X[:, 2] < 0.5)}  # of a feature that says nothing
    model = simulate(wood, people).outcomes["elm"].model
    training, foreign = people["elm"].rows(Part.TRAINING).X, np.asarray(model.owners_) != "elm"
    rows = cohort(wood, rows=60, seed=9).X
    clipped = np.clip(rows, training.min(axis=0), training.max(axis=0))
    assert foreign.any()
    trees = Walker(model.forest_.take(np.flatnonzero(foreign)), rows.shape[1])
    assert np.array_equal(trees.votes(rows), trees.votes(clipped))
