"""A forest under differential privacy: what leaves, what one patient changes, and what all epochs may cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import count, product

import numpy as np
import pytest
from pydantic import ValidationError

from spinney.algorithms.dp_forest import (
    CountOrder,
    DpForestSite,
    Entered,
    NoisyCounts,
    blind_forest,
    common_forest,
    leaf_counts,
    with_shares,
)
from spinney.choice.metrics import auroc
from spinney.errors import Refused, RoundVoid
from spinney.federation import disclosure, noise
from spinney.federation.messages import Done, MaskedCounts, ReleasedSeed, Signature
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.testing.algorithm import AlgorithmContract
from spinney.trial.simulate import LocalMail, houses_of, simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study

SPLIT = {"validation": 0, "newest": 0}


def private(**sections):
    settings = {"name": "dp-forest", "trees": 8, "depth": 3, "epsilon": 4, **sections.pop("algorithm", {})}
    return study(algorithm=settings, split={**SPLIT, **sections.pop("split", {})}, **sections)


@pytest.fixture
def repeatable(monkeypatch):
    """Noise that every run of a test draws alike: in a house nobody can foretell it."""
    monkeypatch.setattr(DpForestSite, "source", lambda self: noise.stream(self.house.name.encode()))


@pytest.mark.usefixtures("repeatable")
class TestDpForest(AlgorithmContract):
    @pytest.fixture
    def study(self):
        return private()

    def test_a_site_below_the_smallest_cohort_stays_out(self, study, cohorts):
        """It does not: that it is small would be told by its absence, and its patients are under the same noise."""
        few = cohorts["ash"].at(np.arange(study.privacy.smallest_cohort - 1))
        assert simulate(study, {**cohorts, "ash": few}).left_out == {}


# ---------------------------------------------------------------------------------------------------------------
# What one patient changes


def test_the_trees_are_the_same_at_every_house_and_others_in_every_epoch():
    wood = private()
    first = blind_forest(wood, 1)
    assert first.digests == blind_forest(wood, 1).digests
    assert not {*first.digests} & {*blind_forest(wood, 2).digests}
    assert len(first) == 8
    assert (np.diff(first.starts, append=len(first.feature)) == 2 * 2**3 - 1).all()


def test_every_split_is_on_the_grid_and_both_sides_can_be_reached():
    features = [
        {"name": "age", "kind": "continuous", "range": [0, 100], "cuts": [25, 50, 75]},
        {"name": "sex", "kind": "binary"},
        {"name": "stage", "kind": "categorical", "categories": ["a", "b", "c"]},
    ]
    wood = private(algorithm={"depth": 6, "trees": 40})
    wood = Study.model_validate({**wood.model_dump(mode="json"), "features": features})
    ages, answers = np.linspace(0, 1, 9), tuple(product((0, 1), repeat=4))
    everybody = np.array([[age, *rest] for age in ages for rest in answers], dtype=np.float32)
    trees = blind_forest(wood, 1)
    walker = Walker(trees, 5)
    for tree, (start, end) in enumerate(zip(trees.starts, trees.ends, strict=True)):
        leaves = np.flatnonzero(trees.feature[start:end] == LEAF)
        assert {*walker.leaves(tree, everybody)} == {*leaves}
    age = trees.feature == 0
    assert {*trees.threshold[age]} == {0.25, 0.5, 0.75}
    assert {*trees.threshold[trees.feature > 0]} == {0.5}


@pytest.mark.parametrize("rows_per_patient", [1, 3])
def test_one_patient_less_changes_one_count_of_every_tree_by_one_and_no_other(rows_per_patient):
    wood = private()
    people, trees = cohort(wood, rows=60, rows_per_patient=rows_per_patient), blind_forest(private(), 1)
    whole, number = leaf_counts(trees, people), np.cumsum(trees.feature == LEAF)[trees.ends - 1]
    for patient in np.unique(people.patients):
        changed = whole - leaf_counts(trees, people.where(people.patients != patient))
        by_tree = [part.sum() for part in np.split(np.abs(changed), number[:-1])]
        assert by_tree == [1] * len(trees)
        assert changed.min() == 0


def test_who_trains_depends_on_nobody_else():
    wood = private()
    everybody = cohort(wood, rows=90, rows_per_patient=3)
    few = everybody.where(everybody.patients < 20)
    theirs = everybody.patients < 20
    assert np.array_equal(everybody.part[theirs], few.part)


def test_the_counts_are_those_of_somebody_who_walks_every_tree_by_hand():
    wood = private()
    people, trees = cohort(wood, rows=40), blind_forest(wood, 1)
    slow = []
    for tree in trees:
        found = {place: [0, 0] for place in np.flatnonzero(tree.feature == LEAF)}
        ends = {}
        for row, sick in zip(people.X, people.y, strict=True):
            node = 0
            while tree.feature[node] != LEAF:
                left = row[tree.feature[node]] <= tree.threshold[node]
                node = node + 1 if left else _right_of(tree, node, ends)
            found[node][sick] += 1
        slow += [found[place] for place in sorted(found)]
    assert leaf_counts(trees, people).tolist() == slow


def _right_of(tree, node, ends):
    """One past the left subtree, by counting."""
    if node not in ends:
        open_, place = 1, node + 1
        while open_:
            open_ += 1 if tree.feature[place] != LEAF else -1
            place += 1
        ends[node] = place
    return ends[node]


# ---------------------------------------------------------------------------------------------------------------
# What leaves


def test_nothing_leaves_but_that_a_house_is_there_and_what_noise_and_masks_hide():
    wood, said = private(), []

    class Noting(DpForestSite):
        def answer(self, step, order):
            reply = super().answer(step, order)
            said.append(reply)
            return reply

    people = {**cohorts(wood, SITES[:3]), "elm": cohort(wood, rows=12, absent=(0, 2))}
    Wood(wood, people, parts=dict.fromkeys(SITES, Noting)).run()
    assert {type(one) for one in said} == {Entered, MaskedCounts, Signature, ReleasedSeed, Done}
    assert all(one.present.all() and not one.holds for one in said if isinstance(one, Entered))
    assert all(one.figures == {} for one in said if isinstance(one, Done))


def test_what_is_opened_is_the_sum_of_all_counts_and_of_all_noise():
    wood = private(algorithm={"honest_sites": 3})
    people, shares = cohorts(wood), []

    class Noting(DpForestSite):
        def count(self, order):
            reply = super().count(order)
            shares.append(self.house.memory["noisy"] - leaf_counts(blind_forest(wood, 1), self.training))
            return reply

    federation = Wood(wood, people, parts=dict.fromkeys(SITES, Noting))
    federation.run()
    told = federation.order("vote")
    plain = sum(leaf_counts(blind_forest(wood, 1), one.rows(Part.TRAINING)) for one in people.values())
    assert np.array_equal(told.counts, plain + sum(shares))
    assert (told.houses, len(shares)) == (4, 4)


def test_the_noise_of_so_many_honest_houses_is_that_of_one_centre(monkeypatch):
    """Four houses add shares of 1/2, so twice the variance of a centre's two-sided geometric noise."""
    wood = private(algorithm={"epsilon": 2, "trees": 2, "depth": 8})
    spreads = []

    class Noting(DpForestSite):
        def count(self, order):
            reply = super().count(order)
            spreads.append(self.house.memory["noisy"] - leaf_counts(blind_forest(wood, 1), self.training))
            return reply

    monkeypatch.setattr(DpForestSite, "source", lambda self: noise.stream(b"spread " + self.house.name.encode()))
    Wood(wood, cohorts(wood), parts=dict.fromkeys(SITES, Noting)).run()
    q = np.exp(-1.0)  # epsilon 2 over two trees
    centre = 2 * q / (1 - q) ** 2
    drawn = np.sum(spreads, axis=0).ravel()
    assert len(drawn) > 900
    assert np.var(drawn) == pytest.approx(2 * centre, rel=0.2)


def test_counts_that_are_out_are_not_told_again_to_others():
    federation = Wood(private(), cohorts(private()))
    federation.run()
    order = federation.order("count")
    with pytest.raises(Refused, match="leave once"):
        federation.site("ash").count(replace(order, attempt=2))


def test_a_site_that_is_lost_costs_its_counts_and_the_others_tell_once():
    wood = private(quorum=3)
    federation = Wood(wood, cohorts(wood), lost={"elm": "count"})
    federation.run()
    assert federation.order("vote").houses == 3
    assert [name for name in federation.houses["ash"].history if name.startswith("epsilon")] == ["epsilon 4.0 1"]


def test_too_few_houses_for_the_noise_are_refused():
    wood = private(algorithm={"honest_sites": 3})
    federation = Wood(wood, cohorts(wood))
    federation.run()
    with pytest.raises(Refused, match="2 participants are too few"):
        federation.site("ash").count(CountOrder("masked", 2, ("ash", "beech")))


# ---------------------------------------------------------------------------------------------------------------
# What it may cost


def test_a_house_tells_until_the_budget_is_spent_and_then_stays_out():
    wood = private(algorithm={"epsilon": 0.1, "total_epsilon": 0.3}, privacy={"epoch_nights": 1})
    history = {name: {} for name in SITES}
    for night in count(1):
        federation = Wood(wood, cohorts(wood), round=night)
        for name, house in federation.houses.items():
            house.history = history[name]
        if night == 4:
            break
        federation.run()
    with pytest.raises(RoundVoid, match=r"privacy budget of epsilon 0\.3 is spent: 0\.3 was told"):
        federation.run()
    assert federation.site("ash").spent == Fraction("0.3")  # to the last digit: 0.1 + 0.1 + 0.1 > 0.3 in binary


def test_the_nights_of_an_epoch_cost_nothing_and_give_guests_the_same_forest():
    wood = private(privacy={"epoch_nights": 7})
    people = cohorts(wood)
    opening = simulate(wood, {name: people[name] for name in SITES[:3]})
    later = simulate(wood, people, round=2, after=opening)
    assert later.model_digest == opening.model_digest
    assert set(later.outcomes) == set(SITES)
    for step in ("join", "count", "count_sign", "count_release"):
        house = houses_of(wood, people, LocalMail(), 2)["ash"]
        house.epoch = 1
        with pytest.raises(Refused, match="told before"):
            DpForestSite(house).answer(step, opening.release.order_of("ash"))


def test_a_second_end_with_other_counts_is_refused():
    federation = Wood(private(), cohorts(private()))
    federation.run()
    told = federation.order("vote")
    with pytest.raises(Refused, match="ended here with other counts"):
        federation.site("ash").vote(NoisyCounts(told.counts + 1, told.houses))


@pytest.mark.parametrize("counts", [np.zeros((3, 2), np.int64), np.zeros((64, 1), np.int64)])
def test_counts_of_other_trees_are_refused(counts):
    with pytest.raises(Refused, match="two noisy counts per leaf"):
        common_forest(private(), 1, NoisyCounts(counts, 4))


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"privacy": {"secure_sum": "ring"}}, "secure_sum: masked"),
        ({"privacy": {"share_metrics": True}}, "share_metrics: false"),
        ({"imputation": "federated-means"}, "imputation: none"),
        ({"split": {"newest": 0.1}}, "newest: 0"),
        ({"split": {"validation": None}}, "validation: 0"),
        ({"algorithm": {"honest_sites": 5}}, "fewest_scoring_sites of at least 5"),
    ],
)
def test_a_study_in_which_epsilon_would_be_false_is_no_study(sections, words):
    with pytest.raises(ValidationError, match=words):
        private(**sections)


# ---------------------------------------------------------------------------------------------------------------
# What it is good for


def test_leaves_that_hold_hardly_more_than_noise_say_what_all_say():
    trees = blind_forest(private(), 1)
    leaves = np.count_nonzero(trees.feature == LEAF)
    counts = np.zeros((leaves, 2), np.int64)
    counts[0] = (0, 1000)
    counts[1] = (-40, 3)
    found = with_shares(trees, counts, 50.0).probability[trees.feature == LEAF]
    overall = 1003 / 1004  # no fewer than one is well
    assert found[0] == pytest.approx((1000 + 51 * overall) / 1051)
    assert found[1] == pytest.approx((3 + 51 * overall) / 54)
    assert found[2] == pytest.approx(overall)


def test_with_enough_patients_it_finds_who_is_ill():
    wood = private(algorithm={"epsilon": 10, "trees": 32, "depth": 4})
    result = simulate(wood, cohorts(wood, rows=1500))
    rows = cohort(wood, rows=3000, seed=99)
    model = common_forest(wood, 1, result.release.order_of("ash"))
    assert auroc(rows.y, Walker(model, 4).votes(rows.X).mean(axis=1)) > 0.8


def test_a_message_that_says_more_is_refused_where_it_arrives():
    with pytest.raises(Refused, match="no message that a site may send"):
        disclosure.check_message(NoisyCounts(np.zeros((4, 2), np.int64), 3), private())
