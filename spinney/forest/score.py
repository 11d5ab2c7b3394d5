"""Confusion counts of every tree on a site's rows, in bounded memory.

A tree says yes where its probability of class 1 is above one half, as scikit-learn's `predict` does. A tree that asks
a column which is not `present` abstains: it adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from joblib import Parallel, delayed
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
    return stream_counts(forest, _blocks(X, y, counted), present, jobs=jobs)


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
    walker, says_yes = Walker(forest, len(present)), forest.probability > YES
    total = np.zeros((len(forest), len(fold) * folds * 4), dtype=np.int64)
    for start in range(0, len(X), BLOCK_ROWS):
        here = start + walker.alike(X[start : start + BLOCK_ROWS])
        no, step = _cells(fold[:, here], folds, y[here])
        rows, seen = X[here], None if counted is None else counted[here]
        shares = np.array_split(np.arange(len(forest)), jobs)
        parts = Parallel(n_jobs=jobs, prefer="threads")(
            delayed(_count_folds)(walker, says_yes, trees, rows, no, step, total.shape[1], seen) for trees in shares
        )
        total += np.concatenate(parts)
    total[abstains(forest, present)] = 0
    return np.ascontiguousarray(total.reshape(len(forest), len(fold), folds, 4).transpose(1, 2, 0, 3))


def stream_counts(
    forest: Forest,
    blocks: Iterable[tuple[Matrix, Labels, NDArray[np.bool_] | None]],
    present: NDArray[np.bool_],
    *,
    jobs: int = 1,
) -> Counts:
    """Confusion counts of every tree over any number of rows, a block of (X, y, counted) at a time."""
    walker = Walker(forest, len(present))
    says_yes = forest.probability > YES
    total = np.zeros((len(forest), 4), dtype=np.int64)
    for X, y, counted in blocks:
        order = _positives_first(walker.alike(X), y)
        X, positives = X[order], int(np.count_nonzero(y))
        seen = None if counted is None else counted[order]
        shares = np.array_split(np.arange(len(forest)), jobs)
        parts = Parallel(n_jobs=jobs, prefer="threads")(
            delayed(_count)(walker, says_yes, trees, X, positives, seen) for trees in shares
        )
        total += np.concatenate(parts)
    total[abstains(forest, present)] = 0
    return total


def _blocks(
    X: Matrix, y: Labels, counted: NDArray[np.bool_] | None
) -> Iterator[tuple[Matrix, Labels, NDArray[np.bool_] | None]]:
    for start in range(0, len(X), BLOCK_ROWS):
        here = slice(start, start + BLOCK_ROWS)
        yield X[here], y[here], None if counted is None else counted[here]


def _positives_first(order: NDArray[np.int64], y: Labels) -> NDArray[np.int64]:
    positive = y[order] != 0
    return np.concatenate([order[positive], order[~positive]])


def _count(
    walker: Walker,
    says_yes: NDArray[np.bool_],
    trees: NDArray[np.int64],
    X: Matrix,
    positives: int,
    seen: NDArray[np.bool_] | None,
) -> Counts:
    """Counts of some trees on rows whose first `positives` are positive."""
    counts = np.empty((len(trees), 4), dtype=np.int64)
    for place, tree in enumerate(trees):
        here = slice(walker.forest.starts[tree], walker.forest.ends[tree])
        yes = says_yes[here].take(walker.leaves(tree, X))
        sick, rows = positives, len(X)
        if seen is not None:
            yes &= seen[:, tree]
            sick, rows = int(np.count_nonzero(seen[:positives, tree])), int(np.count_nonzero(seen[:, tree]))
        tp, fp = int(np.count_nonzero(yes[:positives])), int(np.count_nonzero(yes[positives:]))
        counts[place] = tp, rows - sick - fp, fp, sick - tp
    return counts


def _cells(fold: NDArray[np.int64], folds: int, y: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which count a row adds to where a tree says no (repeats x rows), and how far from there the count of a yes is."""
    sick = np.asarray(y) != 0
    first = 4 * (fold + folds * np.arange(len(fold))[:, None])
    return first + np.where(sick, 3, 1), np.where(sick, -3, 1)  # tp 0, tn 1, fp 2, fn 3


def _count_folds(
    walker: Walker,
    says_yes: NDArray[np.bool_],
    trees: NDArray[np.int64],
    X: Matrix,
    no: NDArray[np.int64],
    step: NDArray[np.int64],
    width: int,
    seen: NDArray[np.bool_] | None,
) -> Counts:
    """Counts of some trees, by repeat and fold."""
    counts = np.empty((len(trees), width), dtype=np.int64)
    for place, tree in enumerate(trees):
        here = slice(walker.forest.starts[tree], walker.forest.ends[tree])
        cells = no + step * says_yes[here].take(walker.leaves(tree, X))
        if seen is not None and not seen[:, tree].all():
            cells = cells[:, seen[:, tree]]
        counts[place] = np.bincount(cells.ravel(), minlength=width)
    return counts
