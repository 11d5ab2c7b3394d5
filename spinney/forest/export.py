"""From fitted scikit-learn trees to trees that may travel.

Thresholds are moved to the study's cuts first; of several cuts that part a tree's rows alike, the roundest is taken,
because the middle one would tell the two values that it lies between. Then the site's own rows run through the tree
again: leaf probabilities are taken from them, and a leaf with fewer distinct patients than the floor is collapsed into
its parent, until none is left. A split whose two leaves say the same after rounding is dropped, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, CountedTree, Forest, Ints, depths, join_forests, right_children, subtree_ends
from spinney.rows.encode import Column, Matrix
from spinney.study.cuts import roundest

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

GrownTree = Union["DecisionTreeClassifier", CountedTree]
Codes = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True)
class Rounding:
    """The study's grid: where each column may be cut, and of what probabilities are multiples.

    A column's cuts rise, and the last is 1, the end of the range: it parts what is known from what is missing. A value
    is in cell `code` if it is above so many of them, so a cut of place `code` has the cells up to `code` on its left.
    """

    cuts: tuple[NDArray[np.float64], ...]
    probability: float

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """How many cells each column has: one per cut."""
        return np.array([len(cuts) for cuts in self.cuts], dtype=np.int64)

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.cells)])[:-1]

    @cached_property
    def _flat(self) -> NDArray[np.float64]:
        return np.concatenate([np.zeros(0), *self.cuts])

    def codes(self, X: Matrix) -> Codes:
        """The cell of every value; the highest number of the type where it is missing."""
        dtype = np.uint8 if self.cells.max(initial=0) < np.iinfo(np.uint8).max else np.uint16
        codes = np.empty(X.shape, dtype=dtype)
        for column, cuts in enumerate(self.cuts):
            codes[:, column] = _cells(X[:, column], cuts, np.iinfo(dtype).max)
        return codes

    def snapped(self, X: Matrix) -> Matrix:
        """Every value moved to the upper end of its cell: all that trees may know of it."""
        moved = np.empty(X.shape, dtype=np.float32)
        for column, cuts in enumerate(self.cuts):
            moved[:, column] = np.append(cuts, np.nan)[_cells(X[:, column], cuts, len(cuts))]
        return moved

    def thresholds(self, feature: NDArray[np.int16], place: NDArray[Any]) -> NDArray[np.float64]:
        """The cuts at these places of these columns."""
        return np.asarray(self._flat[self._first[feature] + place])

    def nearest(self, feature: NDArray[np.int16], threshold: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of the cuts that are nearest to these thresholds."""
        place = np.zeros(len(feature), dtype=np.int64)
        for column, here in _by_column(feature):
            cuts, asked = self.cuts[column], threshold[here]
            above = np.minimum(np.searchsorted(cuts, asked), len(cuts) - 1)
            below = np.maximum(above - 1, 0)
            place[here] = np.where(asked - cuts[below] < cuts[above] - asked, below, above)
        return place

    def share(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities moved to the grid."""
        return np.asarray(np.minimum(np.rint(probability / self.probability) * self.probability, 1.0))


def _cells(values: Matrix, cuts: NDArray[np.float64], missing: int) -> NDArray[np.int64]:
    found = np.minimum(np.searchsorted(cuts, values), len(cuts) - 1)
    return np.where(np.isnan(values), missing, found)


def grid_of(columns: Sequence[Column], probability: float) -> Rounding:
    """The grid of a study's columns."""
    return Rounding(tuple(np.array(column.cuts) for column in columns), probability)


def _by_column(feature: NDArray[np.int16]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The columns that are asked, and where."""
    order = np.argsort(feature, kind="stable")
    columns, first = np.unique(feature[order], return_index=True)
    yield from zip(columns.tolist(), np.split(order, first[1:]), strict=False)


def export_forest(
    trees: Sequence[GrownTree],
    drawn: NDArray[Any],
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    *,
    floor: int,
    rounding: Rounding | None,
    jobs: int = 1,
) -> Forest:
    """The forest that may leave. `X` is what the trees were grown on, snapped where there is a grid.

    `drawn` (trees x patients) says how often a patient was in a tree's bootstrap.
    """
    exported = Parallel(n_jobs=jobs, prefer="threads")(
        delayed(export_tree)(tree, counts[patients], X, y, patients, floor=floor, rounding=rounding)
        for tree, counts in zip(trees, drawn, strict=True)
    )
    return join_forests(exported)


def export_tree(
    tree: GrownTree,
    weight: NDArray[Any],
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    *,
    floor: int,
    rounding: Rounding | None,
) -> Forest:
    """One tree, rounded, recounted and collapsed. `weight` is a row's number of draws."""
    counted = tree if isinstance(tree, CountedTree) else _recounted(tree, weight, X, y, patients, rounding)
    bare, distinct = counted.tree, counted.patients
    leaf = bare.feature == LEAF
    leaf[_parents(bare.feature)[1:][distinct[1:] < floor]] = True
    draws = counted.draws
    probability = np.divide(counted.positive, draws, out=np.zeros(len(leaf)), where=draws > 0)
    if distinct[0] < floor:
        probability[0] = 0.5  # even all of its patients together are too few: the tree says nothing
    if rounding is not None:
        probability = rounding.share(probability)
    return _without_idle_splits(_cut(bare, leaf, subtree_ends(bare.feature), probability))


def _recounted(
    tree: DecisionTreeClassifier,
    weight: NDArray[Any],
    X: Matrix,
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    rounding: Rounding | None,
) -> CountedTree:
    """A scikit-learn tree whose thresholds are cuts of the grid, and which of the site's rows end in its nodes."""
    bare = _preorder(tree.tree_)
    used = np.flatnonzero(weight)
    if rounding is not None:
        bare = on_grid(bare, X[used], rounding)
    ends = Walker(bare, X.shape[1]).leaves(0, X[used])
    after, draws = subtree_ends(bare.feature), weight[used].astype(np.int64)
    distinct = _distinct(_parents(bare.feature), after, ends, patients[used])
    return CountedTree(bare, _below(after, ends, draws), _below(after, ends, draws * y[used]), distinct)


def on_grid(tree: Forest, X: Matrix, rounding: Rounding) -> Forest:
    """One tree whose thresholds are cuts of the grid: those that part these rows as before, else the nearest.

    Among several cuts that part them alike, how round a cut is decides, not where the rows are.
    """
    splits = np.flatnonzero(tree.feature != LEAF)
    if not len(splits):
        return tree
    feature = tree.feature[splits]
    left, right = _sides(tree, splits, X, rounding)
    last = rounding.cells[feature] - 1
    place = rounding.nearest(feature, tree.threshold[splits])
    place = np.where(right < 0, last, place)  # all that is known goes left: so will whatever comes
    several = (left >= 0) & (left < right)
    place[several] = roundest(left[several] + 1, right[several]) - 1
    threshold = np.zeros(len(tree.feature))
    threshold[splits] = rounding.thresholds(feature, place)
    return replace(tree, threshold=threshold)


def _sides(tree: Forest, splits: Ints, X: Matrix, rounding: Rounding) -> tuple[Ints, Ints]:
    """The highest cell left of each split, and the lowest right of it; -1 where nothing known goes there.

    Sorted by leaf, the rows of every node are neighbours, so that each level of the tree is one pass over the rows.
    """
    ends = Walker(tree, X.shape[1]).leaves(0, X)
    order = np.argsort(ends, kind="stable")
    cells, ends = rounding.codes(X[order]), ends[order]
    first, turn, last = (
        np.searchsorted(ends, nodes)
        for nodes in (splits, right_children(tree.feature)[splits], subtree_ends(tree.feature)[splits])
    )
    left, right = np.full(len(splits), -1), np.full(len(splits), -1)
    depth = depths(tree, len(tree.feature))[splits]
    for level in range(int(depth.max()) + 1):
        here = np.flatnonzero(depth == level)
        asked = tree.feature[splits[here]]
        left[here] = _extreme(np.fmax, cells, asked, first[here], turn[here])
        right[here] = _extreme(np.fmin, cells, asked, turn[here], last[here])
    return left, right


def _extreme(pick: np.ufunc, cells: Codes, column: NDArray[np.int16], first: Ints, last: Ints) -> Ints:
    """The highest or lowest known cell of each stretch of rows, in a column of its own; -1 where there is none."""
    found, sizes = np.full(len(first), -1), last - first
    some = np.flatnonzero(sizes)
    if len(some):
        begins = np.cumsum(sizes[some]) - sizes[some]
        rows = np.arange(sizes.sum()) + np.repeat(first[some] - begins, sizes[some])
        values = cells[rows, np.repeat(column[some], sizes[some])]
        best = pick.reduceat(np.where(values == np.iinfo(cells.dtype).max, np.nan, values), begins)
        found[some] = np.where(np.isnan(best), -1, best)
    return found


def _preorder(tree: Any) -> Forest:
    """A scikit-learn tree's nodes, parents first and left before right; it says nothing yet."""
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
    missing_left = tree.missing_go_to_left[order].astype(bool) & split
    return Forest(feature, threshold, missing_left, np.zeros(len(feature)))


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
    return _summed(after, rows)


def _below(after: Ints, ends: Ints, values: Ints) -> Ints:
    """What rows that end below every node add up to."""
    return _summed(after, np.bincount(ends, weights=values, minlength=len(after)).astype(np.int64))


def _summed(after: Ints, each: Ints) -> Ints:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    return np.asarray(before[after] - before[:-1])


def _standing(leaf: NDArray[np.bool_], after: Ints) -> Ints:
    """The node that stands for each when the tree ends at these leaves: the topmost leaf at or above it, or itself."""
    place = np.arange(len(after))
    below = np.maximum.accumulate(np.where(leaf, after, 0))[:-1] > place[1:]
    below = np.concatenate([np.zeros(1, bool), below])
    topmost = np.maximum.accumulate(np.where(leaf & ~below, place, 0))
    return np.where(leaf | below, topmost, place)


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
