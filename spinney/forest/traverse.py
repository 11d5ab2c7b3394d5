"""Running rows through trees: rows become codes once, and walk on these.

A row's code in a column is above how many of the thresholds that these trees ask there it is: a value is not above a
threshold exactly where its code is not above the threshold's place. So the walk answers as one on the values would, for
any trees. The compiled walk follows nodes and reads columns without looking, so what it could run astray on is refused
here first: a broken shape (`Forest.ends`), a column that is not there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from spinney.errors import TreeRefused
from spinney.forest.tree import LEAF, Forest, depths, right_children
from spinney.rows.encode import Matrix

Codes = NDArray[np.uint8] | NDArray[np.uint16]
MOST_CUTS = np.iinfo(np.uint16).max - 1  # the highest code says that a value is missing
DEEPEST = np.iinfo(np.int16).max - 1


class Walker:
    """A forest made ready to walk."""

    def __init__(self, forest: Forest, columns: int) -> None:
        from spinney.forest.walk import PARTS, node_words  # late: whoever only reads a study need not wait for it

        if forest.feature.max(initial=LEAF) >= columns:
            raise TreeRefused(f"a split asks a column beyond the {columns} that there are")
        self.forest, self.columns, starts = forest, columns, forest.starts  # a broken shape is refused here
        split = np.flatnonzero(forest.feature != LEAF)
        self._cuts, self._first, places = _cuts_of(forest, split, columns)
        most = int(np.diff(self._first).max(initial=0))
        parts = np.arange(PARTS) / PARTS
        self._starts = np.zeros((columns, PARTS), dtype=np.uint16)
        for column, (begin, end) in enumerate(pairwise(self._first)):
            self._starts[column] = np.searchsorted(self._cuts[begin:end], parts)
        if most > MOST_CUTS:
            raise TreeRefused(f"a column is asked for {most} thresholds; {MOST_CUTS} can be told apart")
        self._dtype = np.uint8 if most < np.iinfo(np.uint8).max else np.uint16
        self._missing = int(np.iinfo(self._dtype).max)
        cut = np.zeros(len(forest.feature), dtype=np.int64)
        cut[split] = places
        right = right_children(forest.feature) - np.arange(len(cut))
        leaf = forest.feature == LEAF
        self._words = node_words(forest.feature, cut, forest.missing_left, right, leaf, self._missing)
        self._roots = np.array(starts)  # the forest's own may be read-only
        deep = depths(forest, DEEPEST)
        self._depths = np.maximum.reduceat(deep, starts).astype(np.int64) if len(forest) else self._roots

    def __len__(self) -> int:
        return len(self.forest)

    def leaves(self, tree: int, rows: Matrix) -> NDArray[np.int64]:
        """The leaf of every row, counted from the tree's first node."""
        from spinney.forest.walk import find_leaves

        found = np.empty((1, len(rows)), dtype=np.int64)
        find_leaves(self._coded(rows), *self._of(slice(tree, tree + 1)), found)
        return np.asarray(found[0] - self.forest.starts[tree])

    def votes(self, rows: Matrix) -> NDArray[np.float64]:
        """Probability of class 1 of every row (first axis) by every tree (second axis)."""
        from spinney.forest.walk import find_votes

        votes = np.empty((len(self), len(rows)))
        find_votes(self._coded(rows), *self._of(slice(None)), np.asarray(self.forest.probability), votes)
        return votes.T

    def yes_counts(
        self,
        rows: Matrix,
        says_yes: NDArray[np.bool_],
        cells: NDArray[np.uint16],
        size: int,
        counted: NDArray[np.bool_] | None,
        jobs: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per tree and cell, on how many rows the tree says yes, and of how many.

        `cells` (ways x rows) says in which cell a row counts, each way; `counted` (rows x trees), whether it does.
        `says_yes` is of nodes.
        """
        from spinney.forest.walk import count_yes

        codes, yes = self._coded(rows), np.zeros((len(self), size), dtype=np.int64)
        gone: NDArray[np.int64] = np.zeros_like(yes)
        looked_at: NDArray[np.bool_] = np.zeros(len(self), dtype=bool)
        if counted is not None:
            looked_at = np.asarray(~counted.all(axis=0))
        cells, said = np.ascontiguousarray(cells), says_yes.view(np.uint8)

        def count(part: slice) -> None:
            out = np.zeros((0, len(rows)), dtype=bool)
            if counted is not None:
                out = np.ascontiguousarray(~counted[:, part][:, looked_at[part]].T)
            count_yes(codes, *self._of(part), said, cells, out, looked_at[part], yes[part], gone[part])

        share = -(-max(len(self), 1) // max(jobs, 1)) if jobs > 0 else len(self)
        parts = [slice(start, start + share) for start in range(0, len(self), max(share, 1))]
        Parallel(n_jobs=jobs, prefer="threads")(delayed(count)(part) for part in parts)
        there = np.bincount(cells.ravel(), minlength=size)
        return yes, there - gone

    def _coded(self, rows: Matrix) -> Codes:
        from spinney.forest.walk import code_rows

        if rows.ndim != 2 or rows.shape[1] != self.columns:
            raise ValueError(f"rows of {self.columns} columns are needed, got an array of shape {rows.shape}")
        codes: Codes = np.empty(rows.shape, dtype=self._dtype)
        code_rows(rows.astype(np.float32, copy=False), self._cuts, self._first, self._starts, self._missing, codes)
        return codes

    def _of(self, trees: slice) -> tuple[Any, Any, Any, int]:
        return self._words, self._roots[trees], self._depths[trees], self._missing


def _cuts_of(
    forest: Forest, split: NDArray[np.int64], columns: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The thresholds of every column, rising, one column behind the other; where each begins; and the place of each
    split's own."""
    feature, threshold = forest.feature[split], forest.threshold[split]
    order = np.lexsort((threshold, feature))
    new = np.ones(len(order), dtype=bool)
    feature_there, cuts_there = feature[order], threshold[order]
    new[1:] = (feature_there[1:] != feature_there[:-1]) | (cuts_there[1:] != cuts_there[:-1])
    cuts, of = cuts_there[new], feature_there[new]
    first = np.searchsorted(of, np.arange(columns + 1)).astype(np.int64)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.cumsum(new) - 1
    return np.ascontiguousarray(cuts), first, places - first[feature]
