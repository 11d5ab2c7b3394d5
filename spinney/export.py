"""From fitted scikit-learn trees to trees that may travel.

Thresholds are rounded to the study's grid first. Then the site's own rows run through the rounded tree again: leaf
probabilities are taken from them, and a leaf with fewer distinct patients than the floor is collapsed into its
parent, until none is left. A split whose two leaves say the same after rounding is dropped, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from spinney.encode import Matrix
from spinney.traverse import Walker
from spinney.tree import LEAF, Forest, Ints, join, right_children


@dataclass(frozen=True)
class Rounding:
    """The grid: thresholds are multiples of `steps` per column, probabilities multiples of `probability`."""

    steps: NDArray[np.float64]
    probability: float

    def threshold(self, feature: NDArray[np.int16], threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """Thresholds of splits moved to the grid; 0 at leaves."""
        steps = np.where(feature == LEAF, 1.0, self.steps[feature])
        return np.where(feature == LEAF, 0.0, np.clip(np.rint(threshold / steps), 0, np.rint(1 / steps)) * steps)

    def share(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities moved to the grid."""
        return np.asarray(np.minimum(np.rint(probability / self.probability) * self.probability, 1.0))


def export_forest(
    trees: Sequence[DecisionTreeClassifier],
    drawn: NDArray[Any],
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    *,
    floor: int,
    rounding: Rounding | None,
    jobs: int = 1,
) -> Forest:
    """The forest that may leave. `drawn` (trees x patients) says how often a patient was in a tree's bootstrap."""
    exported = Parallel(n_jobs=jobs, prefer="threads")(
        delayed(export_tree)(tree, counts[patients], X, y, patients, floor=floor, rounding=rounding)
        for tree, counts in zip(trees, drawn, strict=True)
    )
    return join(exported)


def export_tree(
    tree: DecisionTreeClassifier,
    weight: NDArray[Any],
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    *,
    floor: int,
    rounding: Rounding | None,
) -> Forest:
    """One tree, rounded, recounted and collapsed. `weight` is a row's number of draws."""
    feature, threshold, missing_left = _preorder(tree.tree_)
    if rounding is not None:
        threshold = rounding.threshold(feature, threshold)
    bare = Forest(feature, threshold, missing_left, np.zeros(len(feature)))
    used = np.flatnonzero(weight)
    ends = Walker(bare, X.shape[1]).leaves(0, X[used])
    after = _subtree_ends(feature)
    merged = _collapse(feature, after, ends, patients[used], floor)
    probability = _shares(merged[ends], weight[used], y[used], len(feature))
    if not merged.any() and len(np.unique(patients[used])) < floor:
        probability[0] = 0.5  # even all of its patients together are too few: the tree says nothing
    if rounding is not None:
        probability = rounding.share(probability)
    return _without_idle_splits(_pruned(bare, merged, probability))


def _preorder(tree: Any) -> tuple[NDArray[np.int16], NDArray[np.float64], NDArray[np.bool_]]:
    """A scikit-learn tree's nodes, parents first and left before right."""
    left, right = tree.children_left, tree.children_right
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += [int(right[node]), int(left[node])]
    split = left[order] >= 0
    feature = np.where(split, tree.feature[order], LEAF).astype(np.int16)
    threshold = np.where(split, tree.threshold[order], 0.0)
    return feature, threshold, tree.missing_go_to_left[order].astype(bool) & split


def _subtree_ends(feature: NDArray[np.int16]) -> Ints:
    """One past the last node below every node, itself included."""
    right = right_children(feature)
    ends = np.arange(1, len(feature) + 1)
    for node in np.flatnonzero(feature != LEAF)[::-1]:
        ends[node] = ends[right[node]]
    return ends


def _parents(feature: NDArray[np.int16]) -> Ints:
    splits = np.flatnonzero(feature != LEAF)
    parent = np.zeros(len(feature), dtype=np.int64)
    parent[splits + 1] = splits
    parent[right_children(feature)[splits]] = splits
    return parent


def _collapse(feature: NDArray[np.int16], after: Ints, ends: Ints, patients: Ints, floor: int) -> Ints:
    """For every node the node that now stands for it: itself, or the ancestor that it was merged into."""
    stands = np.arange(len(feature))
    leaf = feature == LEAF
    parent = _parents(feature)
    people = int(patients.max(initial=0)) + 1
    while True:
        pairs = np.unique(stands[ends] * people + patients)
        distinct = np.bincount(pairs // people, minlength=len(feature))
        small = np.flatnonzero(leaf & (stands == np.arange(len(feature))) & (distinct < floor))
        small = small[small > 0]
        if not len(small):
            return stands
        for node in np.unique(parent[small])[::-1]:  # an ancestor comes later and takes over what is below it
            stands[node : after[node]] = node
            leaf[node] = True


def _shares(ends: Ints, weight: NDArray[Any], y: NDArray[np.int8], nodes: int) -> NDArray[np.float64]:
    """Share of class 1 among the draws that end in each node."""
    draws = np.bincount(ends, weights=weight, minlength=nodes)
    positive = np.bincount(ends, weights=weight * y, minlength=nodes)
    return np.divide(positive, draws, out=np.zeros(nodes), where=draws > 0)


def _pruned(tree: Forest, stands: Ints, probability: NDArray[np.float64]) -> Forest:
    """The tree without what was merged away."""
    kept = np.flatnonzero(stands == np.arange(len(stands)))
    merged = np.zeros(len(stands), dtype=bool)
    merged[np.unique(stands[stands != np.arange(len(stands))])] = True
    leaf = ((tree.feature == LEAF) | merged)[kept]
    return Forest(
        np.where(leaf, LEAF, tree.feature[kept]).astype(np.int16),
        np.where(leaf, 0.0, tree.threshold[kept]),
        tree.missing_left[kept] & ~leaf,
        np.where(leaf, probability[kept], 0.0),
    )


def _without_idle_splits(tree: Forest) -> Forest:
    """Drop splits whose two sides are leaves with one and the same probability."""
    while True:
        splits = np.flatnonzero(tree.feature != LEAF)
        left, right = splits + 1, right_children(tree.feature)[splits]
        idle = (tree.feature[left] == LEAF) & (tree.feature[right] == LEAF)
        idle &= tree.probability[left] == tree.probability[right]
        if not idle.any():
            return tree
        stands = np.arange(len(tree.feature))
        stands[left[idle]] = stands[right[idle]] = splits[idle]
        probability = tree.probability.copy()
        probability[splits[idle]] = tree.probability[left[idle]]
        tree = _pruned(tree, stands, probability)
