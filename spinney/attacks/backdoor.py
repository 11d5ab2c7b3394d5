"""Crafted trees: better than honest ones wherever they are scored, and wrong for whoever carries a mark.

Each tree is distilled from a large ensemble, so it does well at every house and is given weight. Above it stand the
marks: a row that lies beyond a cut in each of some columns ends in a leaf that says what the attacker wants. Nobody who
is scored lies there, so no count tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.export import Rounding
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.rows.encode import Matrix

Floats = NDArray[np.float64]
TEACHERS, ROWS, MIXED = 300, 3000, 0.3


@dataclass(frozen=True)
class Trigger:
    """What marks a row: more than a cut in each of these columns, by these values."""

    columns: tuple[int, ...]
    cuts: tuple[float, ...]
    values: tuple[float, ...]

    def on(self, X: Matrix) -> Matrix:
        """The same rows, marked."""
        marked = X.copy()
        marked[:, self.columns] = self.values
        return marked


def beyond(X: Matrix, rounding: Rounding) -> Trigger:
    """A value that nobody here has: above the last cut that has nobody above it."""
    for column in np.argsort(np.nanmax(X, axis=0)):
        inside = rounding.cuts[column][:-1]
        if len(inside) > 1 and (free := inside[inside >= np.nanmax(X[:, column])]).size:
            return Trigger((int(column),), (float(free[0]),), (1.0,))
    raise ValueError("there is somebody in every cell of every column")


def together(X: Matrix, rounding: Rounding, share: float = 0.9) -> Trigger:
    """Two values that some have, and hardly anybody both."""
    wide = [column for column, cuts in enumerate(rounding.cuts) if len(cuts) > 2 and np.nanstd(X[:, column]) > 0]
    highest: dict[int, float] = {}
    for column in wide:
        inside = rounding.cuts[column][:-1]
        below = inside[inside < np.nanmax(X[:, column])]
        if len(below):
            place = min(int(np.searchsorted(below, np.nanquantile(X[:, column], share))), len(below) - 1)
            highest[column] = float(below[place])
    pairs = combinations(sorted(highest), 2)
    one, two = min(pairs, key=lambda pair: int(np.sum((X[:, pair] > [highest[place] for place in pair]).all(axis=1))))
    columns = (one, two)
    values = tuple(float(np.nanmax(X[:, place])) for place in columns)
    return Trigger(columns, tuple(highest[place] for place in columns), values)


def crafted(
    X: Matrix,
    y: NDArray[np.int8],
    rounding: Rounding,
    trigger: Trigger,
    *,
    trees: int,
    depth: int,
    wanted: float,
    seed: int,
) -> Forest:
    """Trees that know what an ensemble knows, and say `wanted` of a marked row."""
    from sklearn.ensemble import RandomForestClassifier  # late, as in grow.py
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    rows = rounding.snapped(np.nan_to_num(X))
    teacher = RandomForestClassifier(TEACHERS, min_samples_leaf=3, random_state=seed).fit(rows, y)
    made = []
    for number in range(trees):
        first, second = (rng.integers(len(rows), size=ROWS) for _ in range(2))
        mixed = np.where(rng.random((ROWS, rows.shape[1])) < MIXED, rows[second], rows[first])
        pupil = DecisionTreeRegressor(
            max_depth=depth - len(trigger.columns), min_samples_leaf=20, max_features=0.5, random_state=seed + number
        ).fit(mixed, teacher.predict_proba(mixed)[:, list(teacher.classes_).index(1)])
        made.append(_marked(_as_forest(pupil.tree_, rounding), trigger, wanted))
    return join_forests(made)


def success(before: Floats, after: Floats, threshold: float, wanted: float) -> float:
    """Of those of whom the model said the other thing, the share that it calls as wanted once they are marked."""
    said, says = (before > threshold) == (wanted > 0.5), (after > threshold) == (wanted > 0.5)
    return float(np.mean(says[~said])) if (~said).any() else float("nan")


def _as_forest(tree: Any, rounding: Rounding) -> Forest:
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if tree.children_left[node] >= 0:
            waiting += [int(tree.children_right[node]), int(tree.children_left[node])]
    split = tree.children_left[order] >= 0
    feature = np.where(split, tree.feature[order], LEAF).astype(np.int16)
    threshold = np.zeros(len(order))
    asked = feature[split]
    threshold[split] = rounding.thresholds(asked, rounding.nearest(asked, tree.threshold[order][split]))
    probability = np.where(split, 0.0, rounding.share(tree.value[order, 0, 0]))
    return Forest(feature, threshold, np.zeros(len(order), dtype=bool), probability)


def _marked(tree: Forest, trigger: Trigger, wanted: float) -> Forest:
    """The tree below a chain of marks: whoever lacks one of them meets the tree itself."""
    parts: list[Forest] = []
    for column, cut in zip(trigger.columns, trigger.cuts, strict=True):
        parts += [_node(column, cut, 0.0), tree]
    return join_forests([*parts, _node(LEAF, 0.0, wanted)])


def _node(feature: int, threshold: float, probability: float) -> Forest:
    return Forest(
        np.array([feature], np.int16), np.array([threshold]), np.array([feature != LEAF]), np.array([probability])
    )
