"""A site's own forest: scikit-learn's own trees and ours, drawn by patient; and the search for better settings."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from spinney.forest.export import export_forest
from spinney.forest.grow import candidates, grow, tree_parameters, tune
from spinney.forest.traverse import Walker
from spinney.study.settings import ForestSettings, Tuning
from tests.spinney.forest.grids import on_steps

THEIRS = partial(ForestSettings, engine="scikit-learn")


def table(rows=300, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 5)).astype(np.float32)
    y = (X[:, 0] + rng.normal(0, 0.3, rows) > 0.5).astype(np.int8)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def same_tree(one, other):
    ours, theirs = one.tree_.__getstate__(), other.tree_.__getstate__()
    return ours["nodes"].tobytes() == theirs["nodes"].tobytes() and np.array_equal(ours["values"], theirs["values"])


SETTINGS = {
    "the default": {},
    "entropy and all features": {"criterion": "entropy", "max_features": "all"},
    "log2, deep, small leaves": {"max_features": "log2", "max_depth": 32, "min_samples_leaf": 1},
    "wide splits": {"min_samples_split": 40},
}


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_with_one_row_per_patient_these_are_the_trees_of_random_forest_classifier(settings, missing):
    X, y = table(missing=missing)
    chosen = THEIRS(trees=6, bootstrap="plain", **settings)
    grown = grow(X, y, np.arange(len(y)), chosen, 7)
    model = RandomForestClassifier(6, random_state=7, **tree_parameters(chosen)).fit(X, y)
    for ours, theirs in zip(grown.trees, model.estimators_, strict=True):
        assert same_tree(ours, theirs)
    drawn = [np.bincount(rows, minlength=len(y)) for rows in model.estimators_samples_]
    assert np.array_equal(grown.drawn, drawn)


def test_every_tree_gets_as_many_ill_patients_as_there_are():
    X, y = table()
    patients = np.arange(300) // 3
    ill = np.bincount(patients, weights=y) > 0
    grown = grow(X, y, patients, THEIRS(trees=10), 3)
    assert (grown.drawn[:, ill].sum(axis=1) == ill.sum()).all()
    assert (grown.drawn[:, ~ill].sum(axis=1) == (~ill).sum()).all()
    plain = grow(X, y, patients, THEIRS(trees=10, bootstrap="plain"), 3)
    assert len({*plain.drawn[:, ill].sum(axis=1)}) > 1


def test_one_class_alone_is_drawn_like_any_other():
    X, _ = table()
    grown = grow(X, np.ones(300, np.int8), np.arange(300), THEIRS(trees=3), 3)
    assert (grown.drawn.sum(axis=1) == 300).all()


def test_with_several_rows_per_patient_whole_patients_are_drawn():
    X, y = table()
    patients = np.random.default_rng(1).permutation(np.repeat(np.arange(60), 5))
    grown = grow(X, y, patients, THEIRS(trees=10), 3)
    assert grown.drawn.shape == (10, 60)
    assert (grown.drawn.sum(axis=1) == 60).all()
    for tree, drawn in zip(grown.trees, grown.drawn, strict=True):
        assert tree.tree_.n_node_samples[0] == np.isin(patients, np.flatnonzero(drawn)).sum()
        assert tree.tree_.weighted_n_node_samples[0] == 5 * drawn.sum()


def test_a_third_of_the_patients_is_out_of_bag_with_all_of_their_rows():
    X, y = table(rows=2000)
    patients = np.arange(2000) // 4
    drawn = grow(X, y, patients, THEIRS(trees=20, max_depth=2), 3).drawn
    assert np.mean(drawn == 0) == pytest.approx(np.exp(-1), abs=0.02)


def test_two_workers_grow_the_same_forest():
    X, y = table()
    one, two = (grow(X, y, np.arange(len(y)), THEIRS(trees=5), 3, jobs=jobs) for jobs in (1, 2))
    assert all(same_tree(ours, theirs) for ours, theirs in zip(one.trees, two.trees, strict=True))
    assert np.array_equal(one.drawn, two.drawn)


def test_another_seed_grows_another_forest():
    X, y = table()
    one, two = (grow(X, y, np.arange(len(y)), THEIRS(trees=1), seed) for seed in (3, 4))
    assert not same_tree(one.trees[0], two.trees[0])


def test_no_tree_has_more_leaves_than_the_study_allows():
    X, y = table(rows=2000)
    for most in (4096, 20):
        grown = grow(X, y, np.arange(len(y)), THEIRS(trees=5, max_depth=16, max_leaves=most), 3)
        leaves = [tree.get_n_leaves() for tree in grown.trees]
        assert max(leaves) == 20 if most == 20 else max(leaves) > 100


def test_the_largest_seed_grows():
    X, y = table(rows=30)
    assert len(grow(X, y, np.arange(30), THEIRS(trees=2), 2**32 - 1).trees) == 2


def test_a_site_with_one_class_grows():
    X, _ = table()
    grown = grow(X, np.ones(len(X), np.int8), np.arange(len(X)), THEIRS(trees=2), 0)
    assert [tree.tree_.node_count for tree in grown.trees] == [1, 1]


SALTED = 2**127 + 5


def out_of_bag(seed, people):
    return np.bincount(np.random.RandomState(seed).randint(0, people, people), minlength=people) == 0


def test_whoever_finds_out_with_what_a_salted_tree_s_splits_begin_does_not_know_its_bootstrap():
    X, y = table()
    known, hidden = (grow(X, y, np.arange(300), THEIRS(trees=20, bootstrap="plain"), seed) for seed in (7, SALTED))
    tried = [np.stack([out_of_bag(tree.random_state, 300) for tree in grown.trees]) for grown in (known, hidden)]
    assert np.array_equal(tried[0], known.drawn == 0)  # as scikit-learn has it
    alike = np.mean(tried[1] == (hidden.drawn == 0), axis=1)
    assert np.all(np.abs(alike - (0.368**2 + 0.632**2)) < 0.12)  # as for two draws that know nothing of each other


def test_every_salted_tree_has_a_bootstrap_and_splits_of_its_own_and_they_come_again():
    X, y = table(rows=60)
    one, again = (grow(X, y, np.arange(60), THEIRS(trees=50), SALTED) for _ in range(2))
    assert np.array_equal(one.drawn, again.drawn)
    assert all(same_tree(ours, theirs) for ours, theirs in zip(one.trees, again.trees, strict=True))
    assert len(np.unique(one.drawn, axis=0)) == len({tree.random_state for tree in one.trees}) == 50


BASE = ForestSettings(min_samples_leaf=8, tuning=Tuning(seconds=10, draws=25))


def test_the_study_s_own_settings_are_tried_first():
    assert next(candidates(BASE, 0)) is BASE


def test_the_search_is_repeatable_and_as_long_as_the_study_says():
    tried = list(candidates(BASE, 5))
    assert len(tried) == 25
    assert tried == list(candidates(BASE, 5))
    assert tried != list(candidates(BASE, 6))


def test_no_candidate_has_smaller_leaves_than_the_study_allows():
    assert min(candidate.min_samples_leaf for candidate in candidates(BASE, 0)) >= 8


def test_no_candidate_is_deeper_than_the_study_allows():
    assert {one.max_depth for one in candidates(ForestSettings(max_depth=8), 5)} == {4, 6, 8}


def test_every_candidate_is_a_valid_choice_of_settings():
    for candidate in candidates(BASE, 0):
        assert ForestSettings.model_validate(candidate.model_dump()) == candidate


def test_the_best_of_the_tried_settings_wins():
    tried = list(candidates(BASE, 0))
    best = tune(BASE, 0, lambda candidate: float(candidate == tried[9]), lambda: True)
    assert best == tried[9]


def test_without_a_better_one_the_study_s_settings_stay():
    assert tune(BASE, 0, lambda _: 0.5, lambda: True) is BASE
    assert tune(BASE, 0, lambda _: float("nan"), lambda: True) is BASE


def test_when_the_time_is_over_only_the_study_s_settings_were_tried():
    tried = []
    assert tune(BASE, 0, lambda candidate: tried.append(candidate) or 0.5, lambda: False) is BASE
    assert tried == [BASE]


OURS = ForestSettings(trees=8, engine="spinney")
GRID = on_steps([1 / 64] * 5)


def same_ours(one, other):
    pairs = zip(one.trees, other.trees, strict=True)
    same = all(
        ours.tree.digests == theirs.tree.digests and np.array_equal(ours.draws, theirs.draws) for ours, theirs in pairs
    )
    return same and np.array_equal(one.drawn, other.drawn)


@pytest.mark.parametrize("seed", [7, SALTED])
def test_our_own_grower_grows_on_the_same_bootstraps(seed):
    X, y = table(missing=0.2)
    patients = np.arange(300) // 2
    ours, theirs = (
        grow(X, y, patients, OURS.model_copy(update={"engine": engine}), seed, rounding=GRID, floor=5)
        for engine in ("spinney", "scikit-learn")
    )
    assert np.array_equal(ours.drawn, theirs.drawn)
    for tree, drawn in zip(ours.trees, ours.drawn, strict=True):
        assert tree.draws[0] == 2 * drawn.sum()
        assert tree.patients[0] == np.count_nonzero(drawn)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_our_own_grower_grows_the_same_forest_with_any_number_of_workers(criterion):
    X, y = table(missing=0.2)
    settings = OURS.model_copy(update={"criterion": criterion})
    one, two, again = (grow(X, y, np.arange(300), settings, 3, jobs, rounding=GRID) for jobs in (1, 2, 2))
    assert same_ours(one, two)
    assert same_ours(one, again)
    assert not same_ours(one, grow(X, y, np.arange(300), settings, 4, rounding=GRID))


def test_in_whatever_order_a_table_s_patients_stand_our_own_grower_needs_to_know_only_who_is_who():
    X, y = table(missing=0.2)
    patients = np.arange(300) // 3
    order = np.random.default_rng(0).permutation(300)
    one = grow(X, y, patients, OURS, 3, rounding=GRID, floor=5)
    other = grow(X[order], y[order], patients[order], OURS, 3, rounding=GRID, floor=5)
    assert same_ours(one, other)


def test_our_own_grower_is_about_as_good_as_scikit_learn():
    X, y = table(rows=3000, missing=0.1)
    train, new = np.arange(1500), np.arange(1500, 3000)
    reached = {}
    for engine in ("spinney", "scikit-learn"):
        settings = OURS.model_copy(update={"engine": engine, "trees": 40})
        grown = grow(GRID.snapped(X[train]), y[train], train, settings, 3, rounding=GRID, floor=5)
        forest = export_forest(
            grown.trees, grown.drawn, GRID.snapped(X[train]), y[train], train, floor=5, rounding=GRID
        )
        reached[engine] = roc_auc_score(y[new], Walker(forest, 5).votes(X[new]).mean(axis=1))
    assert reached["spinney"] == pytest.approx(reached["scikit-learn"], abs=0.01)


def test_our_own_grower_without_a_grid_is_refused():
    X, y = table(rows=40)
    with pytest.raises(ValueError, match="needs the study's grid"):
        grow(X, y, np.arange(40), OURS, 3)
