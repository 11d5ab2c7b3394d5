"""Confusion counts against scikit-learn, tree by tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from spinney.forest import score
from spinney.forest.score import abstains, confusion_counts, fold_counts, stream_counts
from spinney.forest.tree import LEAF, Forest, join_forests
from tests.spinney.forest.grown import PRESENT, TREES, stump_on, table


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
    counts = confusion_counts(join_forests([forest, stump_on(0)]), X, y, present)
    assert not counts[:-1][asks].any()
    assert counts[-1].sum() == len(y)
    assert np.array_equal(abstains(forest, present), asks)


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
    assert confusion_counts(join_forests([]), X, y, PRESENT).shape == (0, 4)
    nobody = np.zeros((2, 0), dtype=np.int64)
    assert not fold_counts(forest, X[:0], y[:0], PRESENT, nobody, 3).any()
    assert fold_counts(join_forests([]), X, y, PRESENT, np.zeros((2, len(X)), dtype=np.int64), 3).shape == (2, 3, 0, 4)


def test_scoring_leaves_the_site_s_rows_as_they_were(forest):
    X, y = table(1)
    before = X.copy(), y.copy()
    confusion_counts(forest, X, y, PRESENT)
    assert np.array_equal(X, before[0], equal_nan=True)
    assert np.array_equal(y, before[1])
