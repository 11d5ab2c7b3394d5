"""From fitted scikit-learn trees to trees that may travel.

Thresholds are rounded to the study's grid first. Then the site's own rows run through the rounded tree again: leaf
probabilities are taken from them, and a leaf with fewer distinct patients than the floor is collapsed into its
parent, until none is left. A split whose two leaves say the same after rounding is dropped, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, Ints, join_forests, right_children, subtree_ends
from spinney.rows.encode import Matrix

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier


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
    return join_forests(exported)


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
    after, parent = subtree_ends(feature), _parents(feature)
    distinct = _distinct(parent, after, ends, patients[used])
    leaf = feature == LEAF
    leaf[parent[1:][distinct[1:] < floor]] = True
    probability = _shares(_standing(leaf, after)[ends], weight[used], y[used], len(feature))
    if distinct[0] < floor:
        probability[0] = 0.5  # even all of its patients together are too few: the tree says nothing
    if rounding is not None:
        probability = rounding.share(probability)
    return _without_idle_splits(_cut(bare, leaf, after, probability))


def _preorder(tree: Any) -> tuple[NDArray[np.int16], NDArray[np.float64], NDArray[np.bool_]]:
    """A scikit-learn tree's nodes, parents first and left before right."""
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += (right[node], left[node])
    split = tree.children_left[order] >= 0
    feature = np.where(split, tree.feature[order], LEAF).astype(np.int16)
    threshold = np.where(split, tree.threshold[order], 0.0)
    return feature, threshold, tree.missing_go_to_left[order].astype(bool) & split


def _parents(feature: NDArray[np.int16]) -> Ints:
    splits = np.flatnonzero(feature != LEAF)
    parent = np.zeros(len(feature), dtype=np.int64)
    parent[splits + 1] = splits
    parent[right_children(feature)[splits]] = splits
    return parent


def _distinct(parent: Ints, after: Ints, ends: Ints, patients: Ints) -> Ints:
    """Distinct patients below every node: its rows, less one wherever two rows of one patient come together.

    Sorted by leaf, each row of a patient comes together with the one before it in the lowest node above both: in
    preorder, the first node on the way up from the later leaf that is not behind the earlier one.
    """
    nodes = len(parent)
    rows = np.bincount(ends, minlength=nodes)
    again = np.bincount(patients)[patients] > 1
    if again.any():
        who, leaf = np.divmod(np.sort(patients[again] * nodes + ends[again]), nodes)
        same = np.flatnonzero(who[1:] == who[:-1])
        earlier, meeting = leaf[same], leaf[same + 1]
        while len(apart := np.flatnonzero(meeting > earlier)):
            meeting[apart] = parent[meeting[apart]]
        rows -= np.bincount(meeting, minlength=nodes)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows)])
    return np.asarray(before[after] - before[:-1])


def _standing(leaf: NDArray[np.bool_], after: Ints) -> Ints:
    """The node that stands for each when the tree ends at these leaves: the topmost leaf at or above it, or itself."""
    place = np.arange(len(after))
    below = np.maximum.accumulate(np.where(leaf, after, 0))[:-1] > place[1:]
    below = np.concatenate([np.zeros(1, bool), below])
    topmost = np.maximum.accumulate(np.where(leaf & ~below, place, 0))
    return np.where(leaf | below, topmost, place)


def _shares(ends: Ints, weight: NDArray[Any], y: NDArray[np.int8], nodes: int) -> NDArray[np.float64]:
    """Share of class 1 among the draws that end in each node."""
    draws = np.bincount(ends, weights=weight, minlength=nodes)
    positive = np.bincount(ends, weights=weight * y, minlength=nodes)
    return np.divide(positive, draws, out=np.zeros(nodes), where=draws > 0)


def _cut(tree: Forest, leaf: NDArray[np.bool_], after: Ints, probability: NDArray[np.float64]) -> Forest:
    """The tree that ends at these leaves."""
    kept = np.flatnonzero(_standing(leaf, after) == np.arange(len(leaf)))
    leaf = leaf[kept]
    return Forest(
        np.where(leaf, LEAF, tree.feature[kept]).astype(np.int16),
        np.where(leaf, 0.0, tree.threshold[kept]),
        tree.missing_left[kept] & ~leaf,
        np.where(leaf, probability[kept], 0.0),
    )


def _without_idle_splits(tree: Forest) -> Forest:
    """Drop splits below which all leaves say the same."""
    after, leaves = subtree_ends(tree.feature), np.flatnonzero(tree.feature == LEAF)
    said = tree.probability[leaves]
    changes = np.cumsum(np.diff(said, prepend=said[0]) != 0)
    first, last = np.searchsorted(leaves, np.arange(len(after))), np.searchsorted(leaves, after) - 1
    return _cut(tree, changes[first] == changes[last], after, said[first])
