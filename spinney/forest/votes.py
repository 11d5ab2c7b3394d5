"""Weighted votes of many ensembles over the same trees, in one pass over the rows.

The score of a row is the weighted mean of the trees' probabilities of class 1. A tree that has no say on a row (it
abstains, or it was grown on that patient) leaves both the sum and the divisor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.forest.traverse import Walker
from spinney.rows.encode import Matrix

Floats = NDArray[np.float64]
BLOCK_CELLS = 4_000_000  # rows x trees, and rows x ensembles, held in memory at once
ALONE_CELLS = 400_000  # OpenBLAS multiplies so many by itself; from 460,800 on it wakes threads, which then spin 0.1 s
DECIMALS = 12  # beyond these, a score tells in which order its votes were added; ties must stay ties


@dataclass(frozen=True)
class Beside:
    """What trees that are in no ensemble say of rows: the sum of their votes on each, and how many may vote there."""

    sums: Floats
    count: Floats

    @classmethod
    def of(cls, walker: Walker, X: Matrix, unseen: NDArray[np.bool_]) -> Beside:
        """Of trees that are silent on rows which they have seen; a block of rows at a time."""
        sums, rows = np.zeros(len(X)), max(1, BLOCK_CELLS // max(len(walker), 1))
        for start in range(0, len(X), rows):
            here = slice(start, start + rows)
            sums[here] = np.sum(walker.votes(X[here]) * unseen[here], axis=1)
        return cls(np.round(sums, DECIMALS), unseen.sum(axis=1).astype(np.float64))


def scores(
    walker: Walker,
    X: Matrix,
    weights: Floats,
    *,
    unseen: NDArray[np.bool_] | None = None,
    own: NDArray[np.int64] | None = None,
    which: NDArray[np.int64] | None = None,
    beside: Beside | None = None,
) -> Floats:
    """Scores (rows x ensembles) under `weights` (trees x ensembles); NaN where no tree has a say.

    `unseen` (rows x own trees) says which of the trees `own` may vote on which row. With `which` (rows x picks), only
    the picked ensembles of each row are returned, such as those of its fold.

    With votes of trees that stand `beside` the own ones, those that may vote on a row speak for all own trees together,
    with the weight that all of them have, as they do on a row that none of them has seen.
    """
    picks = weights.shape[1] if which is None else which.shape[1]
    result = np.empty((len(X), picks))
    rows = max(1, BLOCK_CELLS // max(len(walker), weights.shape[1], 1))
    for start in range(0, len(X), rows):
        here = slice(start, start + rows)
        votes = walker.votes(X[here])
        divisor = np.broadcast_to(weights.sum(axis=0), (len(votes), weights.shape[1]))
        if unseen is not None and own is not None:
            votes[:, own] *= unseen[here]
            others = np.delete(weights, own, axis=0).sum(axis=0)  # added up, not taken off: an empty sum is exactly 0
            may = _product(unseen[here].astype(np.float64), weights[own])
            divisor = others + may
        sums = _product(votes, weights)
        if unseen is not None and own is not None and beside is not None:
            said = _product(votes[:, own], weights[own])
            mean, whole = weights[own].mean(axis=0), weights[own].sum(axis=0)
            may = may + beside.count[here, None] * mean
            home = np.divide(said + beside.sums[here, None] * mean, may, out=np.zeros_like(said), where=may > 0)
            sums, divisor = sums - said + home * whole, others + np.where(may > 0, whole, 0.0)
        block = np.divide(sums, divisor, out=np.full(sums.shape, np.nan), where=divisor > 0)
        result[here] = block if which is None else np.take_along_axis(block, which[here], axis=1)
    return np.clip(np.round(result, DECIMALS), 0.0, 1.0)


def _product(votes: Floats, weights: Floats) -> Floats:
    """`votes @ weights`. For one ensemble it is so little work that waking a second thread costs more than it saves."""
    if weights.shape[1] > 1:
        return votes @ weights
    rows = max(8, ALONE_CELLS // max(len(weights), 1) // 8 * 8)  # whole steps of its kernel keep the order of adding
    sums = np.empty((len(votes), 1))
    for start in range(0, len(votes), rows):
        np.matmul(votes[start : start + rows], weights, out=sums[start : start + rows])
    return sums
