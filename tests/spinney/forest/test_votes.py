"""Weighted votes of ensembles against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.forest import votes
from spinney.forest.traverse import Walker
from spinney.forest.tree import join_forests
from spinney.forest.votes import scores
from tests.spinney.forest.grown import COLUMNS, TREES, table


def slow_scores(forest, X, weights, may_vote):
    """The weighted mean, a row and a tree at a time."""
    walker, result = Walker(forest, COLUMNS), np.full((len(X), weights.shape[1]), np.nan)
    said = walker.votes(X)
    for row in range(len(X)):
        for ensemble in range(weights.shape[1]):
            pairs = [
                (weights[tree, ensemble], said[row, tree])
                for tree in range(len(forest))
                if may_vote[row, tree] and weights[tree, ensemble]
            ]
            if pairs:
                result[row, ensemble] = sum(w * p for w, p in pairs) / sum(w for w, _ in pairs)
    return result


def some_weights(seed, ensembles=3):
    """Weights with abstaining trees: their weight is 0."""
    rng = np.random.default_rng(seed)
    return rng.random((TREES, ensembles)) * (rng.random((TREES, ensembles)) < 0.7)


def test_a_score_is_the_weighted_mean_of_the_trees_that_vote(forest):
    X, _ = table(3, rows=60)
    weights = some_weights(0)
    slow = slow_scores(forest, X, weights, np.ones((60, TREES), bool))
    assert np.allclose(scores(Walker(forest, COLUMNS), X, weights), slow, rtol=0, atol=1e-12)


def test_a_tree_that_has_seen_a_row_leaves_its_sum_and_its_divisor(forest):
    X, _ = table(3, rows=60)
    weights, own = some_weights(0), np.array([1, 4, 9])
    unseen = np.random.default_rng(5).random((60, 3)) < 0.4
    may_vote = np.ones((60, TREES), bool)
    may_vote[:, own] = unseen
    fast = scores(Walker(forest, COLUMNS), X, weights, unseen=unseen, own=own)
    assert np.allclose(fast, slow_scores(forest, X, weights, may_vote), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1.0, np.exp(8), 1e12])
def test_where_no_tree_has_a_say_there_is_no_score_whatever_the_size_of_weights(forest, scale):
    X, _ = table(3, rows=60)
    weights, own = np.zeros((TREES, 1)), np.arange(1, TREES)
    weights[own, 0] = np.random.default_rng(1).random(TREES - 1) * scale
    unseen = np.random.default_rng(5).random((60, TREES - 1)) < 0.5
    unseen[:20] = False
    got = scores(Walker(forest, COLUMNS), X, weights, unseen=unseen, own=own)
    assert np.isnan(got[:20]).all()
    assert not np.isnan(got[20:]).any()


def test_without_any_weight_there_is_no_score(forest):
    X, _ = table(3, rows=10)
    assert np.isnan(scores(Walker(forest, COLUMNS), X, np.zeros((TREES, 2)))).all()


def test_each_row_gets_the_ensembles_that_it_asks_for(forest):
    X, _ = table(3, rows=60)
    weights = some_weights(0, ensembles=6)
    which = np.random.default_rng(8).integers(0, 6, (60, 2))
    everything = scores(Walker(forest, COLUMNS), X, weights)
    picked = scores(Walker(forest, COLUMNS), X, weights, which=which)
    assert np.array_equal(picked, np.take_along_axis(everything, which, axis=1))


@pytest.mark.parametrize("ensembles", [1, 50])
def test_equal_rows_have_equal_scores_wherever_they_stand(forest, ensembles):
    X, _ = table(3, rows=300)
    weights = some_weights(0, ensembles)
    again = np.random.default_rng(4).integers(0, 300, 1001)
    walker = Walker(forest, COLUMNS)
    assert np.array_equal(scores(walker, X[again], weights), scores(walker, X, weights)[again])


def test_trees_without_weight_change_no_score(forest):
    X, _ = table(3, rows=300)
    weights = np.ones((TREES, 1))
    alone = scores(Walker(forest, COLUMNS), X, weights)
    together = scores(Walker(join_forests([forest, forest]), COLUMNS), X, np.concatenate([0 * weights, weights]))
    assert np.array_equal(alone, together)


def test_votes_in_small_blocks_are_the_same(forest, monkeypatch):
    X, _ = table(3, rows=60)
    weights, own = some_weights(0), np.array([1, 4, 9])
    unseen = np.random.default_rng(5).random((60, 3)) < 0.4
    whole = scores(Walker(forest, COLUMNS), X, weights, unseen=unseen, own=own)
    monkeypatch.setattr(votes, "BLOCK_CELLS", 7 * TREES)
    parts = scores(Walker(forest, COLUMNS), X, weights, unseen=unseen, own=own)
    assert np.allclose(parts, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("own", [np.array([1, 4, 9]), np.arange(TREES)])
def test_votes_of_one_ensemble_that_are_added_up_in_parts_are_the_same(forest, monkeypatch, own):
    X, _ = table(3, rows=300)
    weights, unseen = some_weights(0, ensembles=1), np.random.default_rng(5).random((300, len(own))) < 0.4
    whole = scores(Walker(forest, COLUMNS), X, weights, unseen=unseen, own=own)
    monkeypatch.setattr(votes, "ALONE_CELLS", 16 * TREES)
    parts = scores(Walker(forest, COLUMNS), X, weights, unseen=unseen, own=own)
    assert np.array_equal(parts, whole, equal_nan=True)
