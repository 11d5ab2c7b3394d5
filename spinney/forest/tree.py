"""Trees as they travel: plain read-only arrays in preorder, so that their shape is implied and can't be wrong.

A node is a split (feature >= 0) or a leaf (feature == LEAF). The left child of node i is i + 1; the right child comes
after the whole left subtree. A row goes left where value <= threshold, and where `missing_left` says so if the value
is missing. `probability` of class 1 counts at leaves only. No counts, impurities or weights are here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import TreeRefused

LEAF = -1
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Forest:
    """Many trees as one set of arrays, one tree behind the other."""

    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    probability: NDArray[np.float64]

    def __post_init__(self) -> None:
        kinds = {"feature": np.int16, "threshold": np.float64, "missing_left": np.bool_, "probability": np.float64}
        for name, kind in kinds.items():
            array = getattr(self, name)
            if array.dtype != kind or array.shape != (len(self.feature),):
                raise TreeRefused(f"{name} is not a plain array of {kind.__name__} with one value per node")
            array.setflags(write=False)
        if self.feature.min(initial=LEAF) < LEAF:
            raise TreeRefused("a split asks a column before the first")

    @cached_property
    def ends(self) -> Ints:
        """One past the last node of every tree."""
        return tree_ends(np.where(self.feature == LEAF, -1, 1))

    @cached_property
    def starts(self) -> Ints:
        """First node of every tree."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]]) if len(self.ends) else self.ends

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> Forest:
        """One tree, as a forest of one."""
        return self._slice(int(self.starts[index]), int(self.ends[index]))

    def __iter__(self) -> Iterator[Forest]:
        return (self[index] for index in range(len(self)))

    def _slice(self, start: int, end: int) -> Forest:
        here = slice(start, end)
        return Forest(self.feature[here], self.threshold[here], self.missing_left[here], self.probability[here])

    def take(self, indices: Sequence[int] | Ints) -> Forest:
        """Some of the trees, in the order asked for."""
        chosen = np.asarray(indices, dtype=np.int64)
        sizes = (self.ends - self.starts)[chosen]
        first = np.cumsum(sizes) - sizes  # where each begins in the new forest
        nodes = np.arange(sizes.sum()) + np.repeat(self.starts[chosen] - first, sizes)
        return Forest(self.feature[nodes], self.threshold[nodes], self.missing_left[nodes], self.probability[nodes])

    def uses(self, columns: int) -> NDArray[np.bool_]:
        """Which tree (row) asks which column."""
        asked = np.zeros((len(self), columns), dtype=bool)
        tree = np.repeat(np.arange(len(self)), self.ends - self.starts)
        split = self.feature != LEAF
        asked[tree[split], self.feature[split]] = True
        return asked

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """What each tree is called everywhere: the hash of its arrays."""
        return tuple(_digest(tree) for tree in self)


@dataclass(frozen=True)
class CountedTree:
    """A tree that says nothing yet, and what ended in each of its nodes."""

    tree: Forest
    draws: Ints
    positive: Ints
    patients: Ints


def join_forests(forests: Sequence[Forest]) -> Forest:
    """One forest of all trees of some forests."""
    if not forests:
        return Forest(np.empty(0, np.int16), np.empty(0), np.empty(0, bool), np.empty(0))
    return Forest(
        np.concatenate([forest.feature for forest in forests]),
        np.concatenate([forest.threshold for forest in forests]),
        np.concatenate([forest.missing_left for forest in forests]),
        np.concatenate([forest.probability for forest in forests]),
    )


def leaves_only(trees: int) -> Forest:
    """So many trees that say nothing: they stand for trees that can't be read."""
    return Forest(np.full(trees, LEAF, np.int16), np.zeros(trees), np.zeros(trees, bool), np.full(trees, 0.5))


def tree_ends(steps: NDArray[np.integer[Any]]) -> Ints:
    """One past the last node of every tree in a preorder of splits (1) and leaves (-1)."""
    balance = np.cumsum(steps, dtype=np.int64)
    lowest = np.minimum.accumulate(np.minimum(balance, 0))
    ends = np.flatnonzero(np.diff(lowest, prepend=0)) + 1  # a tree is over where its leaves outnumber its splits
    if len(steps) and (len(ends) == 0 or ends[-1] != len(steps)):
        raise TreeRefused("the shape of a tree is broken: its last split has no leaf")
    return np.asarray(ends, dtype=np.int64)


def right_children(feature: NDArray[np.int16]) -> Ints:
    """Right child of every split in a well-formed preorder; 0 at leaves."""
    splits = np.flatnonzero(feature != LEAF)
    right = np.zeros(len(feature), dtype=np.int64)
    right[splits] = subtree_ends(feature)[splits + 1]
    return right


def subtree_ends(feature: NDArray[np.int16]) -> Ints:
    """One past the last node below every node, itself included, in a well-formed preorder.

    Count +1 per split and -1 per leaf: a subtree is over where the count first falls below what it was before. Nodes
    sorted by (count, place) show all these ends at once.
    """
    count = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(feature == LEAF, -1, 1))])
    order = np.argsort(count, kind="stable")
    keys = count[order] * len(count) + order
    return order[np.searchsorted(keys, (count[:-1] - 1) * len(count) + np.arange(len(feature)))]


def depths(forest: Forest, limit: int) -> NDArray[np.int16]:
    """Depth of every node; a tree deeper than the limit is refused."""
    right = right_children(forest.feature)
    depth = np.zeros(len(forest.feature), dtype=np.int16)
    level = forest.starts
    for deep in range(limit + 1):
        depth[level] = deep
        splits = level[forest.feature[level] != LEAF]
        if not len(splits):
            return depth
        level = np.concatenate([splits + 1, right[splits]])
    raise TreeRefused(f"a tree is deeper than the limit of {limit}")


def check_shape(split: NDArray[np.bool_], trees: int, limit: int) -> None:
    """Refuse a preorder of splits (True) and leaves (False) that is not so many trees within the limit of depth.

    A split before two leaves is replaced by a leaf, everywhere at once: every round takes one level off every tree, so
    that after `limit` rounds only one leaf per tree is left.
    """
    for _ in range(limit):
        if not split.any():
            break
        twig = np.zeros(len(split), dtype=bool)
        twig[:-2] = split[:-2] & ~split[1:-1] & ~split[2:]
        gone = np.zeros(len(split), dtype=bool)
        gone[1:] |= twig[:-1]
        gone[2:] |= twig[:-2]
        split = (split & ~twig)[~gone]
    if split.any():
        raise TreeRefused(f"a tree is deeper than the limit of {limit}, or a split has no leaf", "depth")
    if len(split) != trees:
        raise TreeRefused(f"{trees} trees were announced and {len(split)} came", "trees")


def _digest(tree: Forest) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for array, kind in ((tree.feature, "<i2"), (tree.threshold, "<f8"), (tree.probability, "<f8")):
        hasher.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    hasher.update(np.packbits(tree.missing_left).tobytes())
    return hasher.hexdigest()
