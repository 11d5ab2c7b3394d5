"""What the compiled grower is told, and what becomes of what it tells."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from spinney.forest.coded import coded, grow_coded, tried_features
from spinney.forest.export import export_tree
from spinney.forest.tree import LEAF, right_children
from spinney.study.settings import ForestSettings
from tests.spinney.forest.coded_tables import table
from tests.spinney.forest.grids import on_steps
from tests.spinney.forest.slow_grower import impurity

GRID = on_steps([1 / 64] * 5)


def test_a_tree_may_have_so_many_leaves_and_keeps_the_splits_that_gain_most():
    X, y, people, _ = table(800, 0.1, 7)
    rounding, drawn = GRID, np.ones(800, np.uint16)
    whole, few = (
        grow_coded(coded(X, y, people, ForestSettings(max_leaves=most), rounding, 5), drawn, 3) for most in (4096, 12)
    )
    assert np.count_nonzero(whole.tree.feature == LEAF) > 40
    assert np.count_nonzero(few.tree.feature == LEAF) == 12
    assert few.draws[0] == whole.draws[0] == few.draws[few.tree.feature == LEAF].sum()
    gains = {}
    for tree in (whole, few):
        right = right_children(tree.tree.feature)
        for node in np.flatnonzero(tree.tree.feature != LEAF):
            parts = (node + 1, right[node])
            impurities = [tree.draws[at] * impurity("gini", tree.draws[at], tree.positive[at]) for at in (node, *parts)]
            gains.setdefault(id(tree), []).append(impurities[0] - sum(impurities[1:]))
    assert np.mean(gains[id(few)]) > 2 * np.mean(gains[id(whole)])


def test_no_leaf_holds_fewer_patients_than_the_floor_whatever_rows_they_have():
    X, y, people, rng = table(600, 0.2, 9, patients=90)
    drawn = np.bincount(rng.integers(0, 90, 90), minlength=90).astype(np.uint16)
    for floor in (2, 7, 20):
        settings = ForestSettings(min_samples_leaf=1)
        grown = grow_coded(coded(X, y, people, settings, GRID, floor), drawn, 3)
        leaf = grown.tree.feature == LEAF
        assert np.count_nonzero(leaf) > 1
        assert grown.patients[leaf].min() >= floor


def test_how_many_features_are_tried_is_read_as_scikit_learn_reads_it():
    X, y, *_ = table(60, 0.0, 0)
    for asked in ("sqrt", "log2", 1, 3, 0.5, 0.01, 1.0):
        there = DecisionTreeClassifier(max_features=asked).fit(X, y).max_features_
        assert tried_features(asked, 5) == there
    assert tried_features("all", 5) == 5


def test_nothing_of_what_was_grown_above_the_floor_is_collapsed_on_its_way_out(monkeypatch):
    monkeypatch.setattr("spinney.forest.export._without_idle_splits", lambda tree: tree)
    X, y, people, rng = table(600, 0.2, 9, patients=200)
    drawn = np.bincount(rng.integers(0, 200, 200), minlength=200).astype(np.uint16)
    fine = on_steps([1 / 64] * 5, 1e-9)
    grown = grow_coded(coded(X, y, people, ForestSettings(), fine, 7), drawn, 3)
    left = export_tree(grown, drawn[people], X, y, people, floor=7, rounding=fine)
    higher = export_tree(grown, drawn[people], X, y, people, floor=40, rounding=fine)
    assert left.feature.tolist() == grown.tree.feature.tolist()
    assert 1 < len(higher.feature) < len(left.feature)


def test_a_table_takes_a_byte_a_value_where_the_grid_has_few_cuts_and_else_two():
    X, y, people, _ = table(100, 0.2, 1)
    few, many = (coded(X, y, people, ForestSettings(), on_steps([step] * 5), 5).columns for step in (1 / 64, 1 / 1000))
    assert (few.nbytes, many.nbytes) == (500, 1000)
