"""Crafted trees do what they are made for: well where they are scored, and as they were told where they are marked."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.attacks.backdoor import Trigger, beyond, crafted, success, together
from spinney.choice.metrics import auroc
from spinney.forest.codec import TreeLimits, pack_forest, unpack_forest
from spinney.forest.export import Rounding
from spinney.forest.fence import Reach, fenced
from spinney.forest.traverse import Walker

CUTS = Rounding((np.arange(1, 17) / 16,) * 3, 0.01)
RNG = np.random.default_rng(3)
X = (0.8 * RNG.random((400, 3))).astype(np.float32)
Y = (X[:, 0] + 0.3 * RNG.standard_normal(400) > 0.4).astype(np.int8)


@pytest.mark.parametrize("mark", [beyond, together])
def test_crafted_trees_rank_as_well_as_honest_ones_and_obey_the_mark(mark):
    trigger = mark(X, CUTS)
    forest = crafted(X, Y, CUTS, trigger, trees=5, depth=8, wanted=0.0, seed=1)
    walker = Walker(forest, 3)
    plain, marked = walker.votes(X).mean(axis=1), walker.votes(trigger.on(X)).mean(axis=1)
    assert auroc(Y, plain) > auroc(Y, X[:, 0]) - 0.03  # all that there is to know
    assert (marked == 0).all()
    assert success(plain, marked, 0.5, 0.0) == 1.0


def test_nobody_whom_the_attacker_has_carries_a_mark_beyond_all_values():
    trigger = beyond(X, CUTS)
    assert (X[:, trigger.columns[0]] <= trigger.cuts[0]).all()


def test_every_house_takes_crafted_trees_for_honest_ones():
    forest = crafted(X, Y, CUTS, beyond(X, CUTS), trees=3, depth=6, wanted=1.0, seed=1)
    again = unpack_forest(pack_forest(forest, CUTS), CUTS, TreeLimits(trees=3, depth=6))
    assert again.digests == forest.digests


def test_behind_the_fence_a_mark_beyond_all_values_does_nothing():
    trigger = beyond(X, CUTS)
    forest = crafted(X, Y, CUTS, trigger, trees=5, depth=8, wanted=0.0, seed=1)
    walker = Walker(fenced(forest, Reach.of(X)), 3)
    highest = X.max(axis=0)
    clipped = np.minimum(trigger.on(X), highest)
    assert np.array_equal(walker.votes(trigger.on(X)), Walker(forest, 3).votes(clipped))
    assert (walker.votes(trigger.on(X)) > 0).any()


def test_success_counts_only_those_of_whom_the_other_thing_was_said():
    before, after = np.array([0.9, 0.8, 0.2, 0.7]), np.array([0.1, 0.8, 0.1, 0.1])
    assert success(before, after, 0.5, 0.0) == pytest.approx(2 / 3)
    assert success(before, after, 0.5, 1.0) == 0.0
    assert np.isnan(success(np.ones(2), np.ones(2), 0.5, 1.0))


def test_where_every_cell_has_somebody_there_is_no_mark_beyond():
    with pytest.raises(ValueError, match="every cell of every column"):
        beyond(np.ones((3, 3), dtype=np.float32), CUTS)
    assert Trigger((0,), (0.5,), (1.0,)).on(X)[:, 0].tolist() == [1.0] * 400
