"""Foreign trees as a house lets them vote: what nobody here was trained on finds nothing in them.

A tree may keep a branch for values that no patient has, so that no count shows what it says there. Walking a row
clipped to the values that a house has trained on never enters it; the same is done here once, to the trees: a split
that all known values here pass on one side passes every known value on that side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.forest.tree import LEAF, Forest, right_children
from spinney.rows.encode import Matrix

END = 1.0  # the last cut of every column: all that is known is on its left


@dataclass(frozen=True)
class Reach:
    """The lowest and the highest known value of every column that a house has trained on."""

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    @classmethod
    def of(cls, X: Matrix) -> Reach:
        """Of these rows; a column of which nothing is known reaches nowhere."""
        known = ~np.isnan(X)
        return cls(
            np.where(known, X, np.inf).min(axis=0, initial=np.inf).astype(np.float64),
            np.where(known, X, -np.inf).max(axis=0, initial=-np.inf).astype(np.float64),
        )


def fenced(forest: Forest, reach: Reach, spared: NDArray[np.bool_] | None = None) -> Forest:
    """The trees as they vote on rows clipped to what was trained on; those that are `spared` stay as they are.

    A missing value still goes where the tree sends it, unless the branch it would go to is one that only values below
    reach: that branch is gone.
    """
    split = forest.feature != LEAF
    if spared is not None:
        split &= ~np.repeat(spared, forest.ends - forest.starts)
    column = np.where(split, forest.feature, 0)
    above = split & (forest.threshold >= reach.highest[column])
    below = split & ~above & (forest.threshold < reach.lowest[column])
    threshold = np.where(above, END, forest.threshold)
    kept = np.ones(len(split), dtype=bool)
    right = right_children(forest.feature)
    for node in np.flatnonzero(below):  # the split and its left side; what is below them, too, goes with it
        kept[node : right[node]] = False
    return Forest(forest.feature[kept], threshold[kept], forest.missing_left[kept], forest.probability[kept])
