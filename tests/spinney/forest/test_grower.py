"""The compiled grower, beside a slow one in plain words and beside scikit-learn."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from spinney.forest.coded import LOG_TABLE, coded, grow_coded, tried_features
from spinney.forest.grower import log_table
from spinney.forest.tree import LEAF, right_children
from spinney.study.settings import ForestSettings
from tests.spinney.forest.coded_tables import table
from tests.spinney.forest.grids import on_steps
from tests.spinney.forest.slow_grower import SlowGrower, entropy_quality, gini_quality, impurity

TABLE = log_table(LOG_TABLE)


STEPS = {
    "a grid of bytes": [1 / 40, 1 / 10, 1 / 2, 1 / 4, 1 / 64],
    "a finer grid": [1 / 1000, 1 / 10, 1 / 2, 1 / 4, 1 / 300],
}
WAYS = {
    "the default": {},
    "entropy, all features": {"criterion": "entropy", "max_features": "all"},
    "small leaves, deep": {"min_samples_leaf": 1, "max_depth": 20},
    "wide splits": {"min_samples_split": 40, "max_features": "log2"},
}


@pytest.mark.parametrize("patients", [None, 40], ids=["one row each", "several rows each"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_grows_the_tree_of_the_slow_grower_bit_for_bit(way, steps, missing, patients):
    X, y, people, rng = table(150, missing, 3, patients)
    settings, rounding = ForestSettings(**way), on_steps(steps)
    drawn = np.bincount(rng.integers(0, people.max() + 1, people.max() + 1), minlength=people.max() + 1)
    grown = grow_coded(coded(X, y, people, settings, rounding, 3), drawn.astype(np.uint16), 12345)
    slow = SlowGrower(
        rounding.codes(X),
        y,
        people,
        drawn[people],
        rounding.cells.tolist(),
        gini_quality if settings.criterion == "gini" else entropy_quality(TABLE),
        settings.max_depth,
        settings.min_samples_split,
        settings.min_samples_leaf,
        3,
        tried_features(settings.max_features, 5),
        12345,
    ).grown()
    feature, place, missing_left, draws, positive, patients_there = (np.array(one) for one in zip(*slow, strict=True))
    split = feature != LEAF
    assert np.count_nonzero(split) >= 2
    assert np.array_equal(grown.tree.feature, feature)
    assert np.array_equal(grown.tree.threshold[split], rounding.thresholds(feature[split], place[split]))
    assert np.array_equal(grown.tree.missing_left, missing_left)
    assert np.array_equal(grown.draws, draws)
    assert np.array_equal(grown.positive, positive)
    assert np.array_equal(grown.patients, patients_there)


def test_a_large_node_is_read_in_parts_that_hold_its_counts():
    rows, rounding = 9000, on_steps([1 / 40])
    X = np.random.default_rng(0).random((rows, 1)).astype(np.float32)
    y = (X[:, 0] > 0.5).astype(np.int8)
    drawn = np.full(rows, 60_000, np.uint16)  # 540 million draws, where a part holds two
    grown = grow_coded(coded(X, y, np.arange(rows), ForestSettings(max_depth=1), rounding, 5), drawn, 0)
    assert grown.draws.tolist() == [60_000 * rows, 60_000 * int((y == 0).sum()), 60_000 * int(y.sum())]
    assert grown.positive.tolist() == [60_000 * int(y.sum()), 0, 60_000 * int(y.sum())]
    assert grown.tree.threshold[0] == 0.5


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_split_lowers_impurity_as_much_as_scikit_learn_s_where_the_thresholds_are_the_same(criterion, missing):
    X, y, people, _ = table(600, missing, 5)
    steps = on_steps([1 / 64] * 5)
    X = steps.snapped(X)  # every midpoint between two values parts them as a cut of the grid does
    settings = ForestSettings(criterion=criterion, max_features="all", max_depth=6)
    grown = grow_coded(coded(X, y, people, settings, steps, 1), np.ones(600, np.uint16), 1)
    feature, right = grown.tree.feature, right_children(grown.tree.feature)
    waiting, compared = [(0, np.arange(600))], 0
    while waiting:
        node, rows = waiting.pop()
        if feature[node] == LEAF:
            continue
        stump = DecisionTreeClassifier(max_depth=1, criterion=criterion, min_samples_leaf=5).fit(X[rows], y[rows]).tree_
        theirs = stump.impurity[0] - np.dot(stump.impurity[1:], stump.n_node_samples[1:]) / len(rows)
        kinds = [(int(grown.draws[one]), int(grown.positive[one])) for one in (node, node + 1, right[node])]
        whole, *parts = (draws * impurity(criterion, draws, yes) for draws, yes in kinds)
        assert (whole - sum(parts)) / len(rows) == pytest.approx(theirs, rel=1e-6)
        values = X[rows, feature[node]]
        left = np.where(np.isnan(values), grown.tree.missing_left[node], values <= grown.tree.threshold[node])
        waiting += [(node + 1, rows[left]), (int(right[node]), rows[~left])]
        compared += 1
    assert compared > 15


def test_n_log_n_is_that_of_mathematics():
    asked = np.unique(np.geomspace(2, LOG_TABLE - 1, 300).astype(int))
    assert TABLE[0] == TABLE[1] == 0
    for n in asked.tolist():
        assert TABLE[n] / 2**24 == pytest.approx(n * log2(n), rel=2e-9, abs=2**-24)
    powers = 2 ** np.arange(16)
    assert np.array_equal(TABLE[powers], powers * np.arange(16) * 2**24)
