"""Trees from codes: which rows a tree is grown on, and what the compiled grower is told and tells."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.export import Codes, Rounding
from spinney.forest.tree import LEAF, CountedTree, Forest, right_children
from spinney.study.settings import ForestSettings

LOG_TABLE = 1 << 16  # larger numbers are worked out where they are met


@dataclass(frozen=True)
class CodedTable:
    """What all trees of a forest share: codes by column, where each row's patient stands beside its other rows."""

    columns: Codes
    y: NDArray[np.int8]
    patients: NDArray[np.int64]
    clustered: bool
    rounding: Rounding
    settings: ForestSettings
    floor: int


def coded(
    X: NDArray[np.float32],
    y: NDArray[np.int8],
    patients: NDArray[np.int64],
    settings: ForestSettings,
    rounding: Rounding,
    floor: int,
) -> CodedTable:
    """A table made ready to grow on: one or two bytes a value."""
    codes: Any = rounding.codes(X)
    clustered = int(patients.max()) + 1 < len(patients)
    if clustered:
        order = np.argsort(patients, kind="stable")
        codes, y, patients = codes[order], y[order], patients[order]
    return CodedTable(np.ascontiguousarray(codes.T), y, patients, clustered, rounding, settings, floor)


def grow_coded(table: CodedTable, drawn: NDArray[np.uint16], seed: int) -> CountedTree:
    """The tree of a bootstrap; `drawn` says how often each patient is in it."""
    from spinney.forest.grower import grow_tree, log_table  # late: whoever only reads a study need not wait for it

    settings, cells = table.settings, table.rounding.cells
    draws = drawn[table.patients].astype(np.int64)
    index = np.flatnonzero(draws).astype(np.int32)
    draws = draws[index]
    feature, place, missing_left, counts, gains = grow_tree(
        table.columns,
        index,
        1 | draws << 21 | (draws * table.y[index]) << 42,
        table.patients.astype(np.int32) if table.clustered else np.zeros(0, np.int32),
        int(cells.max()),
        cells - 1,
        settings.max_depth,
        settings.min_samples_split,
        max(settings.min_samples_leaf, table.floor),
        table.floor,
        tried_features(settings.max_features, len(cells)),
        log_table(LOG_TABLE) if settings.criterion == "entropy" else np.zeros(0, np.int64),
        np.uint64(seed),
    )
    kept = _most_useful(feature, gains, settings.max_leaves)
    feature = np.where(kept[1], feature, LEAF).astype(np.int16)[kept[0]]
    split = feature != LEAF
    threshold = np.zeros(len(feature))
    threshold[split] = table.rounding.thresholds(feature[split], place[kept[0]][split])
    tree = Forest(feature, threshold, missing_left[kept[0]] & split, np.zeros(len(feature)))
    return CountedTree(tree, *np.ascontiguousarray(counts[kept[0]].T))


def _most_useful(feature: NDArray[np.int16], gains: NDArray[np.float64], leaves: int) -> tuple[Any, Any]:
    """Which nodes stay, and which of all still split, where a tree may have so many leaves: the best splits first."""
    split = feature != LEAF
    if np.count_nonzero(~split) <= leaves:
        return slice(None), split
    right, opened, stays = right_children(feature), np.zeros(len(feature), bool), np.zeros(len(feature), bool)
    stays[0], waiting = True, [(-gains[0], 0)]
    for _ in range(leaves - 1):
        node = heapq.heappop(waiting)[1]
        opened[node] = True
        for child in (node + 1, int(right[node])):
            stays[child] = True
            if split[child]:
                heapq.heappush(waiting, (-gains[child], child))
    return stays, opened


def tried_features(asked: str | float, columns: int) -> int:
    """How many features are tried at a split, as scikit-learn reads it."""
    if isinstance(asked, str):
        return {"sqrt": max(1, int(sqrt(columns))), "log2": max(1, int(log2(columns))), "all": columns}[asked]
    return min(columns, asked) if isinstance(asked, int) else max(1, int(asked * columns))
