"""Confusion counts against scikit-learn, tree by tree, and weighted votes against a loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import confusion_matrix

from spinney.forest import score, votes
from spinney.forest.export import export_forest
from spinney.forest.score import abstains, confusion_counts, fold_counts, stream_counts
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join
from spinney.forest.votes import scores

COLUMNS, TREES = 5, 12
PRESENT = np.ones(COLUMNS, dtype=bool)


def table(seed, rows=500, missing=0.2):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, COLUMNS)).astype(np.float32)
    X[:, 1] = X[:, 1].round()
    y = (X[:, 0] + rng.normal(0, 0.3, rows) > 0.6).astype(np.int8)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


@pytest.fixture(scope="module", params=[0.0, 0.2], ids=["nothing missing", "values missing"])
def grown(request):
    """A fitted scikit-learn forest, and the same trees as ours."""
    X, y = table(0, missing=request.param)
    model = RandomForestClassifier(TREES, max_depth=6, random_state=0).fit(X, y)
    drawn = np.stack([np.bincount(rows, minlength=len(y)) for rows in model.estimators_samples_])
    return model, export_forest(model.estimators_, drawn, X, y, np.arange(len(y)), floor=1, rounding=None)


@pytest.fixture(scope="module")
def forest(grown):
    return grown[1]


def expected(model, X, y):
    """tp, tn, fp, fn of every tree by scikit-learn."""
    found = [confusion_matrix(y, tree.predict(X), labels=[0, 1]) for tree in model.estimators_]
    return np.array([(m[1, 1], m[0, 0], m[0, 1], m[1, 0]) for m in found])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_counts_equal_scikit_learn_s_predictions_for_every_tree(grown, missing):
    model, forest = grown
    X, y = table(1, missing=missing)
    assert np.array_equal(confusion_counts(forest, X, y, PRESENT), expected(model, X, y))


@pytest.mark.parametrize("kind", [np.int8, np.int64, bool])
def test_labels_may_be_of_any_integer_kind(grown, kind):
    model, forest = grown
    X, y = table(1)
    assert np.array_equal(confusion_counts(forest, X, y.astype(kind), PRESENT), expected(model, X, y))


@pytest.mark.parametrize("only", [0, 1])
def test_a_site_with_one_class_counts_that_class(grown, only):
    model, forest = grown
    X, _ = table(1)
    y = np.full(len(X), only)
    assert np.array_equal(confusion_counts(forest, X, y, PRESENT), expected(model, X, y))


def test_a_share_of_exactly_one_half_is_a_no():
    even = Forest(np.array([LEAF], np.int16), np.zeros(1), np.zeros(1, bool), np.array([0.5]))
    X, y = table(1)
    assert confusion_counts(even, X, y, PRESENT).tolist() == [[0, int((y == 0).sum()), 0, int(y.sum())]]


def test_a_tree_that_asks_an_absent_column_adds_nothing(forest):
    X, y = table(1)
    present = PRESENT.copy()
    present[3] = False
    asks = np.array([3 in tree.feature for tree in forest])
    assert asks.any()
    counts = confusion_counts(join([forest, stump_on(0)]), X, y, present)
    assert not counts[:-1][asks].any()
    assert counts[-1].sum() == len(y)
    assert np.array_equal(abstains(forest, present), asks)


def stump_on(feature, threshold=0.5, below=0.0, above=1.0):
    return Forest(
        np.array([feature, LEAF, LEAF], np.int16),
        np.array([threshold, 0, 0]),
        np.zeros(3, bool),
        np.array([0, below, above]),
    )


def test_rows_that_are_not_counted_are_as_if_they_were_not_there(forest):
    X, y = table(1)
    counted = np.random.default_rng(2).random((len(X), TREES)) < 0.4
    counts = confusion_counts(forest, X, y, PRESENT, counted=counted)
    for place, tree in enumerate(forest):
        here = counted[:, place]
        assert np.array_equal(counts[[place]], confusion_counts(tree, X[here], y[here], PRESENT))


@pytest.mark.parametrize("rows_at_once", [1, 7, 499, 500, 501])
def test_where_a_block_ends_makes_no_difference(forest, monkeypatch, rows_at_once):
    X, y = table(1)
    counted = np.random.default_rng(2).random((len(X), TREES)) < 0.4
    whole = confusion_counts(forest, X, y, PRESENT, counted=counted)
    monkeypatch.setattr(score, "BLOCK_ROWS", rows_at_once)
    assert np.array_equal(confusion_counts(forest, X, y, PRESENT, counted=counted), whole)


def test_a_stream_of_uneven_blocks_adds_up_to_the_whole(forest):
    X, y = table(1)
    cuts = [0, 3, 3, 200, 500]
    stream = ((X[start:end], y[start:end], None) for start, end in pairwise(cuts))
    assert np.array_equal(stream_counts(forest, stream, PRESENT), confusion_counts(forest, X, y, PRESENT))


@pytest.mark.parametrize("jobs", [2, 40])
def test_more_workers_count_the_same(forest, jobs):
    X, y = table(1)
    counted = np.random.default_rng(2).random((len(X), TREES)) < 0.4
    one = confusion_counts(forest, X, y, PRESENT, counted=counted)
    assert np.array_equal(confusion_counts(forest, X, y, PRESENT, counted=counted, jobs=jobs), one)


@pytest.mark.parametrize(("rows_at_once", "jobs"), [(1 << 16, 1), (7, 2), (499, 40)])
def test_counts_by_fold_are_those_of_each_fold_s_rows(forest, monkeypatch, rows_at_once, jobs):
    X, y = table(1)
    rng = np.random.default_rng(2)
    counted, fold = rng.random((len(X), TREES)) < 0.4, rng.integers(0, 4, (3, len(X)))
    present = PRESENT & (np.arange(len(PRESENT)) != 1)
    counted[:, 0] = True
    wanted = [
        [
            confusion_counts(forest, X[here], y[here], present, counted=counted[here])
            for here in (one == n for n in range(4))
        ]
        for one in fold
    ]
    monkeypatch.setattr(score, "BLOCK_ROWS", rows_at_once)
    found = fold_counts(forest, X, y, present, fold, 4, counted=counted, jobs=jobs)
    assert found.shape == (3, 4, TREES, 4)
    assert np.array_equal(found, wanted)


def test_no_rows_and_no_trees_count_nothing(forest):
    X, y = table(1)
    assert confusion_counts(forest, X[:0], y[:0], PRESENT).tolist() == [[0, 0, 0, 0]] * TREES
    assert confusion_counts(join([]), X, y, PRESENT).shape == (0, 4)
    nobody = np.zeros((2, 0), dtype=np.int64)
    assert not fold_counts(forest, X[:0], y[:0], PRESENT, nobody, 3).any()
    assert fold_counts(join([]), X, y, PRESENT, np.zeros((2, len(X)), dtype=np.int64), 3).shape == (2, 3, 0, 4)


def test_scoring_leaves_the_site_s_rows_as_they_were(forest):
    X, y = table(1)
    before = X.copy(), y.copy()
    confusion_counts(forest, X, y, PRESENT)
    assert np.array_equal(X, before[0], equal_nan=True)
    assert np.array_equal(y, before[1])


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
    together = scores(Walker(join([forest, forest]), COLUMNS), X, np.concatenate([0 * weights, weights]))
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
