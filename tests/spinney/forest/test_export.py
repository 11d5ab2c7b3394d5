"""What leaves equals scikit-learn's trees where nothing is hidden, and hides what the study says where it must."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from spinney.forest import codec
from spinney.forest.export import export_forest, on_grid
from spinney.forest.grow import grow
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, right_children
from spinney.study.settings import ForestSettings
from tests.spinney.forest.grids import on_steps

ROWS, COLUMNS = 600, 6
STEPS = [1 / 1000, 0.05, 0.5, 0.3, 1 / 1000, 1 / 1000]
GRID = on_steps(STEPS)
THEIRS = partial(ForestSettings, engine="scikit-learn")


def table(seed=0, missing=0.0, rows=ROWS):
    """Rows with noise, ties and, if wanted, holes."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, COLUMNS)).astype(np.float32)
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = X[:, 2].round()
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 0.4, rows) > 1).astype(np.int8)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def draws_of(model, rows):
    """How often each row was drawn for each tree of a fitted scikit-learn forest."""
    if not model.bootstrap:
        return np.ones((len(model.estimators_), rows), dtype=np.uint16)
    return np.stack([np.bincount(drawn, minlength=rows) for drawn in model.estimators_samples_])


def exported(model, X, y, patients=None, floor=1, rounding=None):
    patients = np.arange(len(y)) if patients is None else patients
    return export_forest(model.estimators_, draws_of(model, len(y)), X, y, patients, floor=floor, rounding=rounding)


def shares(forest, X):
    """Every tree's probability of class 1 for every row, in full precision."""
    walker = Walker(forest, COLUMNS)
    return np.stack([tree.probability[walker.leaves(place, X)] for place, tree in enumerate(forest)])


def fitted(X, y, **settings):
    return RandomForestClassifier(8, random_state=3, **settings).fit(X, y)


SETTINGS = {
    "as it is": {},
    "small leaves forbidden": {"min_samples_leaf": 7, "max_depth": 5},
    "without bootstrap": {"bootstrap": False, "max_features": 2},
    "not in preorder": {"max_leaf_nodes": 23},
    "entropy": {"criterion": "entropy", "max_features": None},
}


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_without_rounding_and_floor_every_tree_says_what_scikit_learn_says(settings, missing):
    X, y = table(missing=missing)
    new, _ = table(seed=1, missing=0.2)
    model = fitted(X, y, **settings)
    said = shares(exported(model, X, y), new)
    for tree, ours in zip(model.estimators_, said, strict=True):
        assert np.array_equal(ours, tree.predict_proba(new)[:, 1])
        assert np.array_equal(ours > 0.5, tree.predict(new) == 1)
    assert np.allclose(said.mean(axis=0), model.predict_proba(new)[:, 1], rtol=0, atol=1e-12)


def test_best_first_trees_are_not_in_preorder_before_export():
    X, y = table()
    left = fitted(X, y, max_leaf_nodes=23).estimators_[0].tree_.children_left
    assert (left[left > 0] != np.flatnonzero(left > 0) + 1).any()


@pytest.mark.parametrize("only", [0, 1])
def test_a_site_that_saw_one_class_says_that_class(only):
    X, _ = table()
    y = np.full(ROWS, only, dtype=np.int8)
    model = fitted(X, y)
    assert model.predict_proba(X).shape == (ROWS, 1)
    assert (shares(exported(model, X, y), X) == only).all()


def test_a_tree_whose_bootstrap_saw_one_class_is_aligned_with_the_others():
    X, _ = table()
    y = np.zeros(ROWS, dtype=np.int8)
    y[0] = 1
    model = fitted(X, y)
    said = shares(exported(model, X, y), X)
    without = draws_of(model, ROWS)[:, 0] == 0
    assert without.any()
    assert not said[without].any()
    assert np.array_equal(said.T, np.stack([tree.predict_proba(X)[:, 1] for tree in model.estimators_], axis=1))


def several_rows_each(seed=0, people=150, each=8, missing=0.1):
    """Patients whose rows look alike, so that a small leaf is soon one patient."""
    rng = np.random.default_rng(seed)
    X, y = table(seed, rows=people)
    patients = rng.permutation(np.repeat(np.arange(people), each))
    X = (X[patients] + rng.normal(0, 0.01, (len(patients), COLUMNS))).clip(0, 1).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y[patients], patients


def fewest_patients(walk, trees, X, patients, drawn):
    """The fewest distinct in-bag patients in any leaf, counted here, leaf by leaf; `walk` says where rows end."""
    fewest = len(X)
    for place, tree in enumerate(trees):
        in_bag = drawn[place][patients] > 0
        ends = walk(place, X[in_bag])
        who = patients[in_bag]
        for leaf in np.flatnonzero(tree == LEAF):
            fewest = min(fewest, len({*who[ends == leaf].tolist()}))
    return fewest


def moved_by_hand(cuts, threshold, values):
    """The roundest of the cuts that part these values as the threshold does, else the nearest, told one by one."""
    left, right = ([v for v in values if (v <= threshold) == low and not np.isnan(v)] for low in (True, False))
    if not right:
        return cuts[-1]
    alike = [place for place, cut in enumerate(cuts, 1) if left and max(left) <= cut < min(right)]
    if alike:
        return cuts[max(alike, key=lambda place: place & -place) - 1]
    return min(reversed(cuts), key=lambda cut: abs(cut - threshold))


def parted(rows, feature, cut, missing_left):
    """The rows left of a cut, and the others."""
    parts = [], []
    for row in rows:
        value = row[0][feature]
        parts[not (missing_left if np.isnan(value) else value <= cut)].append(row)
    return parts


def by_hand(tree, node, fitted_rows, rows, floor, coarse):
    """What leaves of a fitted tree, told from its rules: nested (feature, threshold, left, right) and shares.

    `fitted_rows` are the drawn rows that reach the node by the fitted thresholds, and `rows` by those on the grid, as
    (values, label, patient, draws).
    """

    def share():
        draws = sum(row[3] for row in rows)
        return float(coarse.share(np.array(sum(row[3] for row in rows if row[1]) / draws if draws else 0.0)))

    if tree.children_left[node] < 0:
        return share()
    feature = tree.feature[node]
    cut = tree.threshold[node]
    moved = moved_by_hand(coarse.cuts[feature].tolist(), cut, [row[0][feature] for row in fitted_rows])
    parts, fitted_parts = (
        parted(some, feature, where, tree.missing_go_to_left[node])
        for some, where in ((rows, moved), (fitted_rows, cut))
    )
    if any(len({row[2] for row in part}) < floor for part in parts):
        return share()
    left, right = (
        by_hand(tree, child[node], before, part, floor, coarse)
        for child, before, part in zip((tree.children_left, tree.children_right), fitted_parts, parts, strict=True)
    )
    return left if isinstance(left, float) and left == right else (feature, moved, left, right)


def nested(tree, node=0):
    if tree.feature[node] == LEAF:
        return float(tree.probability[node])
    right = right_children(tree.feature)[node]
    return tree.feature[node], tree.threshold[node], nested(tree, node + 1), nested(tree, right)


@pytest.mark.parametrize("floor", [1, 5, 20])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("each", [1, 4])
def test_what_leaves_is_what_the_rules_say_told_one_row_at_a_time(each, missing, floor):
    X, y, patients = several_rows_each(people=200, each=each, missing=missing)
    coarse = on_steps(STEPS, 0.1)
    grown = grow(X, y, patients, THEIRS(trees=6, min_samples_leaf=2), 1)
    forest = export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=coarse)
    for place, tree in enumerate(forest):
        draws = grown.drawn[place][patients]
        rows = [row for row in zip(X, y, patients, draws, strict=True) if row[3]]
        assert nested(tree) == by_hand(grown.trees[place].tree_, 0, rows, rows, floor, coarse)


@pytest.mark.parametrize("floor", [2, 5, 12])
def test_every_leaf_that_arrives_holds_the_floor_of_distinct_patients(floor):
    X, y, patients = several_rows_each()
    grown = grow(X, y, patients, THEIRS(trees=12, min_samples_leaf=5), 1)
    forest = export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=GRID)
    arrived = codec.unpack_forest(codec.pack_forest(forest, GRID), GRID, codec.TreeLimits(trees=12, depth=12))
    walker = Walker(arrived, COLUMNS)
    assert fewest_patients(walker.leaves, [tree.feature for tree in arrived], X, patients, grown.drawn) >= floor
    assert len(arrived.feature) > 12


def test_plain_scikit_learn_leaves_of_five_rows_hold_one_patient():
    X, y, patients = several_rows_each()
    grown = grow(X, y, patients, THEIRS(trees=12, min_samples_leaf=5), 1)
    leaves = [np.where(tree.tree_.children_left < 0, LEAF, 0) for tree in grown.trees]
    fewest = fewest_patients(lambda place, rows: grown.trees[place].apply(rows), leaves, X, patients, grown.drawn)
    assert fewest == 1


def test_recounting_is_needed_because_rounding_alone_breaks_the_floor():
    X, y, patients = several_rows_each()
    grown = grow(X, y, patients, THEIRS(trees=12, min_samples_leaf=5), 1)
    unrounded = export_forest(grown.trees, grown.drawn, X, y, patients, floor=5, rounding=None)
    split = unrounded.feature != LEAF
    threshold, asked = unrounded.threshold.copy(), unrounded.feature[split]
    threshold[split] = GRID.thresholds(asked, GRID.nearest(asked, threshold[split]))
    moved = replace(unrounded, threshold=threshold)
    walker = Walker(moved, COLUMNS)
    assert fewest_patients(walker.leaves, [tree.feature for tree in moved], X, patients, grown.drawn) < 5


def test_a_tree_on_fewer_patients_than_the_floor_says_nothing():
    X, y = table(rows=40)
    y[:] = 1
    drawn = np.zeros((1, 40), dtype=np.uint16)
    drawn[0, :4] = 10
    tree = fitted(X, y).estimators_[0]
    forest = export_forest([tree], drawn, X, y, np.arange(40), floor=5, rounding=GRID)
    assert forest.feature.tolist() == [LEAF]
    assert forest.probability.tolist() == [0.5]


def test_thresholds_and_probabilities_are_on_the_grid():
    X, y = table(missing=0.1)
    forest = exported(fitted(X, y), X, y, floor=2, rounding=GRID)
    split = forest.feature != LEAF
    for column, threshold in zip(forest.feature[split], forest.threshold[split], strict=True):
        assert threshold in GRID.cuts[column]
    percent = forest.probability[~split] * 100
    assert np.allclose(percent, np.rint(percent), rtol=0, atol=1e-9)
    assert not forest.probability[split].any()
    assert not forest.threshold[~split].any()


def test_a_rounded_probability_is_that_of_the_rows_that_end_there():
    X, y = table()
    model = fitted(X, y, max_depth=4)
    forest, drawn = exported(model, X, y, floor=5, rounding=GRID), draws_of(model, ROWS)
    walker = Walker(forest, COLUMNS)
    for place, tree in enumerate(forest):
        ends = walker.leaves(place, X)
        for leaf in np.flatnonzero(tree.feature == LEAF):
            here = drawn[place] * (ends == leaf)
            assert tree.probability[leaf] == pytest.approx((here * y).sum() / here.sum(), abs=0.005 + 1e-9)


def test_no_split_is_left_whose_two_leaves_say_the_same():
    X, y = table(missing=0.1)
    forest = exported(fitted(X, y), X, y, floor=2, rounding=on_steps(STEPS, 0.25))
    splits = np.flatnonzero(forest.feature != LEAF)
    left, right = splits + 1, right_children(forest.feature)[splits]
    both = (forest.feature[left] == LEAF) & (forest.feature[right] == LEAF)
    assert both.any()
    assert (forest.probability[left[both]] != forest.probability[right[both]]).all()


@pytest.mark.parametrize("floor", [1, 5])
def test_dropping_idle_splits_changes_no_prediction(monkeypatch, floor):
    X, y, patients = several_rows_each()
    new, _ = table(seed=5, missing=0.3)
    grown = grow(X, y, patients, THEIRS(trees=12, min_samples_leaf=1), 1)

    def export():
        coarse = on_steps(STEPS, 0.25)
        return export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=coarse)

    pruned = export()
    monkeypatch.setattr("spinney.forest.export._without_idle_splits", lambda tree: tree)
    whole = export()
    assert len(pruned.feature) < len(whole.feature)
    assert np.array_equal(shares(pruned, new), shares(whole, new))


def test_on_a_grid_finer_than_the_values_rounding_moves_no_share_by_more_than_half_a_step():
    X, y = table()
    X = X.round(2)
    model = fitted(X, y, max_depth=6)
    fine = on_steps([1 / 20_000] * COLUMNS)
    moved = np.abs(shares(exported(model, X, y), X) - shares(exported(model, X, y, rounding=fine), X))
    in_bag = draws_of(model, ROWS) > 0
    assert 0 < moved[in_bag].max() <= 0.005 + 1e-9


def test_a_forest_exported_by_two_workers_is_the_same():
    X, y, patients = several_rows_each()
    grown = grow(X, y, patients, THEIRS(trees=12), 1)
    one, two = (
        export_forest(grown.trees, grown.drawn, X, y, patients, floor=5, rounding=GRID, jobs=jobs) for jobs in (1, 2)
    )
    assert one.digests == two.digests


def test_nothing_but_the_four_arrays_survives():
    X, y = table()
    forest = exported(fitted(X, y), X, y, floor=5, rounding=GRID)
    assert vars(forest).keys() <= {"feature", "threshold", "missing_left", "probability", "ends", "starts", "digests"}


def test_of_cuts_that_part_the_rows_alike_the_roundest_is_taken_wherever_the_rows_are():
    cuts = on_steps([1 / 64])
    rows = np.array([[0.1], [0.3], [0.32], [0.9]], dtype=np.float32)
    stump = Forest(np.array([0, LEAF, LEAF], np.int16), np.zeros(3), np.zeros(3, bool), np.zeros(3))
    told = {
        low: float(on_grid(replace(stump, threshold=np.array([low + 0.01, 0, 0])), rows, cuts).threshold[0])
        for low in (0.1, 0.32)
    }
    assert told == {0.1: 0.25, 0.32: 0.5}


def test_where_everything_known_goes_left_so_will_whatever_comes():
    X = np.array([[0.1, 0.5]] * 20 + [[np.nan, 0.5]] * 20, dtype=np.float32)
    y = np.repeat([0, 1], 20).astype(np.int8)
    forest = export_forest(
        fitted(X, y).estimators_[:1], np.ones((1, 40), int), X, y, np.arange(40), floor=2, rounding=on_steps([0.1, 0.1])
    )
    assert forest.threshold[0] == 1.0


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_trees_grown_on_snapped_rows_part_them_as_they_did(missing):
    X, y = table(missing=missing)
    coarse = on_steps([1 / 20] * COLUMNS)
    snapped = coarse.snapped(X)
    model = fitted(snapped, y, min_samples_leaf=2)
    forest = exported(model, snapped, y, rounding=coarse)
    in_bag = draws_of(model, ROWS) > 0
    for tree, ours, here in zip(model.estimators_, shares(forest, X), in_bag, strict=True):
        assert np.abs(ours - tree.predict_proba(snapped)[:, 1])[here].max() <= 0.005 + 1e-9


def test_codes_cells_and_snapped_values_say_the_same():
    X, _ = table(missing=0.2)
    codes, snapped = GRID.codes(X), GRID.snapped(X)
    assert codes.dtype == np.uint16
    for column, cuts in enumerate(GRID.cuts):
        for value, code, top in zip(X[:60, column], codes[:, column], snapped[:, column], strict=False):
            if np.isnan(value):
                assert code == 65_535
                assert np.isnan(top)
            else:
                assert code == sum(cut < value for cut in cuts)
                assert top == cuts[code]
    assert on_steps([1 / 65] * COLUMNS).codes(X).dtype == np.uint8
