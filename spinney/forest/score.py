"""Confusion counts of every tree on a site's rows, in bounded memory.

A tree says yes where its probability of class 1 is above one half, as scikit-learn's `predict` does. A tree that asks
a column which is not `present` abstains: it adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spinney.forest.traverse import Walker
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix

Counts = NDArray[np.int64]  # trees x (tp, tn, fp, fn)
Labels = NDArray[np.int8]
BLOCK_ROWS = 1 << 16
YES = 0.5  # what a tree must say more than


def abstains(forest: Forest, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which trees ask a column that is not there."""
    return np.asarray(forest.uses(len(present))[:, ~present].any(axis=1))


def confusion_counts(
    forest: Forest,
    X: Matrix,
    y: Labels,
    present: NDArray[np.bool_],
    *,
    counted: NDArray[np.bool_] | None = None,
    jobs: int = 1,
) -> Counts:
    """tp, tn, fp, fn of every tree. `counted` (rows x trees) leaves rows out, such as those a tree was grown on."""
    return stream_counts(forest, [(X, y, counted)], present, jobs=jobs)


def stream_counts(
    forest: Forest,
    blocks: Iterable[tuple[Matrix, Labels, NDArray[np.bool_] | None]],
    present: NDArray[np.bool_],
    *,
    jobs: int = 1,
) -> Counts:
    """Confusion counts of every tree over any number of rows, a block of (X, y, counted) at a time."""
    ways = ((X, y, np.zeros((1, len(X)), np.int64), counted) for X, y, counted in blocks)
    counts: Counts = _counted(forest, ways, present, 1, 1, jobs)[0, 0]
    return counts


def fold_counts(
    forest: Forest,
    X: Matrix,
    y: Labels,
    present: NDArray[np.bool_],
    fold: NDArray[np.int64],
    folds: int,
    *,
    counted: NDArray[np.bool_] | None = None,
    jobs: int = 1,
) -> Counts:
    """Confusion counts of every tree by fold (repeats x folds x trees x 4); `fold` (repeats x rows) says which.

    Rows are walked once.
    """
    return _counted(forest, [(X, y, fold, counted)], present, len(fold), folds, jobs)


def _counted(
    forest: Forest,
    blocks: Iterable[tuple[Matrix, Labels, NDArray[np.int64], NDArray[np.bool_] | None]],
    present: NDArray[np.bool_],
    repeats: int,
    folds: int,
    jobs: int,
) -> Counts:
    """A cell is a repeat, a fold and a class: there a tree has said yes so often, of so many times."""
    walker, says_yes = Walker(forest, len(present)), forest.probability > YES
    size = repeats * folds * 2
    yes, all_ = np.zeros((len(forest), size), np.int64), np.zeros((len(forest), size), np.int64)
    for X, y, fold, counted in blocks:
        for start in range(0, len(X), BLOCK_ROWS):
            here = slice(start, start + BLOCK_ROWS)
            cells = 2 * (fold[:, here] + folds * np.arange(repeats)[:, None]) + (np.asarray(y[here]) != 0)
            seen = None if counted is None else counted[here]
            told = walker.yes_counts(X[here], says_yes, cells.astype(np.uint16), size, seen, jobs)
            yes += told[0]
            all_ += told[1]
    no = all_ - yes
    total = np.stack([yes[:, 1::2], no[:, ::2], yes[:, ::2], no[:, 1::2]], axis=2)
    total[abstains(forest, present)] = 0
    return np.ascontiguousarray(total.reshape(len(forest), repeats, folds, 4).transpose(1, 2, 0, 3))
