"""A site's own forest: decision trees on bootstraps of *patients*, by our own grower or by scikit-learn.

Patients with a positive row and those without are drawn apart. Drawn together (`bootstrap: plain`), and where every
patient has one row, scikit-learn's are, tree for tree, the trees of RandomForestClassifier with the same random_state.
Where patients have several rows, a bootstrap of rows would leave hardly any row out of bag (its patient's other rows
would have been seen), and every score of own trees would flatter; so patients are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from spinney.forest.coded import CodedTable, coded, grow_coded
from spinney.forest.export import GrownTree, Rounding
from spinney.forest.tree import CountedTree
from spinney.rows.encode import Matrix
from spinney.study.settings import ForestSettings

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

MAX_SEED = np.iinfo(np.int32).max
Seeds = tuple[int | list[int], int]  # of a tree's bootstrap, and of its splits
Spread = Callable[[Callable[..., Any], Sequence[Any], Sequence[Any]], list[Any]]
"""Calls a function with what all calls share and one thing of its own, for each of these, wherever there is room."""


@dataclass(frozen=True)
class Grown:
    """Grown trees and how often each patient (column) was drawn for each tree (row)."""

    trees: Sequence[GrownTree]
    drawn: NDArray[np.uint16]


def grow(
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    settings: ForestSettings,
    seed: int,
    jobs: int = 1,
    spread: Spread | None = None,
    *,
    rounding: Rounding | None = None,
    floor: int = 1,
) -> Grown:
    """Grow the forest, in threads or as `spread` says. `patients` are codes 0..m-1, one per row.

    Our own grower needs the grid, and makes no leaf with fewer distinct patients than the floor. scikit-learn knows of
    neither; the export moves its thresholds and collapses its leaves.
    """
    seeds = _seeds(seed, settings.trees)
    kinds = np.bincount(patients, weights=y if settings.bootstrap == "by-class" else np.zeros(len(y))) > 0
    grow_one: Callable[..., Any]
    shared: tuple[Any, ...]
    if settings.engine == "scikit-learn":
        grow_one, shared = _grow_one, (X, y, patients, kinds, tree_parameters(settings))
    else:
        if rounding is None:
            raise ValueError("our own grower needs the study's grid; without one, engine has to be scikit-learn")
        grow_one, shared = _grow_coded, (coded(X, y, patients, settings, rounding, floor), kinds)
    if spread is None:
        built = Parallel(n_jobs=jobs, prefer="threads")(delayed(grow_one)(*shared, of_tree) for of_tree in seeds)
    else:
        built = spread(grow_one, shared, seeds)
    return Grown([tree for tree, _ in built], np.stack([draws for _, draws in built]))


def _seeds(seed: int, trees: int) -> list[Seeds]:
    """Those of every tree: one number for both, as in RandomForestClassifier, or two unrelated ones if salted.

    Splits begin with 31 bits. Whoever has the tree can try out which of them let it ask the features that it asks.
    """
    if seed < 2**32:
        states = np.random.RandomState(seed)
        return [(one, one) for one in (states.randint(MAX_SEED) for _ in range(trees))]
    stream = hashlib.shake_256(seed.to_bytes(16, "big")).digest(20 * trees)
    return [(bootstrap, splits) for *bootstrap, splits in np.frombuffer(stream, "<u4").reshape(trees, 5).tolist()]


def tree_parameters(settings: ForestSettings) -> dict[str, Any]:
    """The study's words as scikit-learn's."""
    return {
        "criterion": settings.criterion,
        "max_depth": settings.max_depth,
        "max_leaf_nodes": settings.max_leaves if settings.max_leaves < 2**settings.max_depth else None,
        "min_samples_split": settings.min_samples_split,
        "min_samples_leaf": settings.min_samples_leaf,
        "max_features": None if settings.max_features == "all" else settings.max_features,
    }


def _grow_one(
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    kinds: NDArray[np.bool_],
    parameters: dict[str, Any],
    seeds: Seeds,
) -> tuple[DecisionTreeClassifier, NDArray[np.uint16]]:
    from sklearn.tree import DecisionTreeClassifier  # late: whoever only reads a study need not wait for it

    bootstrap, splits = seeds
    drawn = _bootstrap(kinds, bootstrap)
    tree = DecisionTreeClassifier(**parameters, random_state=splits)
    return tree.fit(X, y, sample_weight=drawn[patients].astype(np.float64)), drawn


def _grow_coded(table: CodedTable, kinds: NDArray[np.bool_], seeds: Seeds) -> tuple[CountedTree, NDArray[np.uint16]]:
    bootstrap, splits = seeds
    drawn = _bootstrap(kinds, bootstrap)
    return grow_coded(table, drawn, splits), drawn


def _bootstrap(kinds: NDArray[np.bool_], seed: int | list[int]) -> NDArray[np.uint16]:
    """How often each patient is drawn: as many of either kind as there are.

    Else a bag without a patient has fewer of that patient's kind than others, and what its tree says of the patient is
    too pessimistic, the more so the smaller the site is.
    """
    states, drawn = np.random.RandomState(seed), np.zeros(len(kinds), dtype=np.uint16)
    for members in (np.flatnonzero(~kinds), np.flatnonzero(kinds)):
        if len(members):
            drawn[members] = np.bincount(states.randint(0, len(members), len(members)), minlength=len(members))
    return drawn


SPACE: dict[str, list[Any]] = {
    "criterion": ["gini", "entropy"],
    "max_depth": [4, 6, 8, 12, 16],
    "min_samples_split": [2, 10, 20, 50],
    "min_samples_leaf": [5, 10, 20],
    "max_features": ["sqrt", "log2", "all"],
}


def candidates(settings: ForestSettings, seed: int) -> Iterator[ForestSettings]:
    """Settings to try in the local search, the study's own first."""
    yield settings
    rng = np.random.default_rng([seed, 0x7E5E])
    for _ in range(settings.tuning.draws - 1):
        draw = {name: values[rng.integers(len(values))] for name, values in SPACE.items()}
        draw["min_samples_leaf"] = max(draw["min_samples_leaf"], settings.min_samples_leaf)
        draw["max_depth"] = min(draw["max_depth"], settings.max_depth)
        yield settings.model_copy(update=draw)


def tune(
    settings: ForestSettings, seed: int, quality: Callable[[ForestSettings], float], go_on: Callable[[], bool]
) -> ForestSettings:
    """The best of the tried settings; `go_on` says whether the time budget still allows another."""
    best, best_quality = settings, -np.inf
    for candidate in candidates(settings, seed):
        if candidate is not settings and not go_on():
            break
        reached = quality(candidate)
        if reached > best_quality:
            best, best_quality = candidate, reached
    return best
