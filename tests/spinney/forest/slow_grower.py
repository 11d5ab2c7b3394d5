"""The grower in plain words: every cut of every column at every node, by counting rows one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2
from typing import Any

import numpy as np

WORD = (1 << 64) - 1
WEYL = 0x9E3779B97F4A7C15


def mixed(state: int) -> int:
    """SplitMix64's finaliser, on Python's whole numbers."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & WORD
    return state ^ (state >> 31)


def drawn_columns(seed: int, way: int, columns: int):
    """Columns in the order in which a node draws them."""
    state, order = mixed((seed + WEYL * way) & WORD), list(range(columns))
    for place in range(columns):
        state = (state + WEYL) & WORD
        pick = place + ((mixed(state) >> 32) * (columns - place) >> 32)
        order[place], order[pick] = order[pick], order[place]
        yield order[place]


def gini_quality(left: tuple[int, int], right: tuple[int, int]) -> float:
    """In proportion to Gini's decrease; sides are (draws, positive draws)."""
    draws, yes = left[0] + right[0], left[1] + right[1]
    apart = float(left[1] * draws - left[0] * yes)
    return apart * apart / (float(left[0]) * float(right[0]))


def entropy_quality(table: Any):
    """By n log n from a table, so that two ways to round a logarithm don't part the trees."""

    def purity(draws: int, yes: int) -> int:
        return int(table[yes]) + int(table[draws - yes]) - int(table[draws])

    return lambda left, right: float(purity(*left) + purity(*right))


def impurity(criterion: str, draws: int, yes: int) -> float:
    """As books have it."""
    share = yes / draws
    if criterion == "gini":
        return 2 * share * (1 - share)
    return -sum(part * log2(part) for part in (share, 1 - share) if part)


@dataclass
class SlowGrower:
    """A table of codes (rows x columns), and what a study says about trees."""

    codes: Any
    y: Any
    patients: Any
    draws: Any
    cells: Any
    quality: Any
    depth: int
    fewest: int
    least: int
    floor: int
    tries: int
    seed: int

    def __post_init__(self) -> None:
        self.missing = max(self.cells)
        self.nodes: list[tuple[int, int, bool, int, int, int]] = []

    def grown(self) -> list[tuple[int, int, bool, int, int, int]]:
        """Column (-1 at leaves), code, missing to the left, draws, positive draws and patients of every node."""
        self._node([int(row) for row in np.flatnonzero(self.draws)], 0, 1)
        return self.nodes

    def _sums(self, rows):
        return sum(int(self.draws[row]) for row in rows), sum(int(self.draws[row]) for row in rows if self.y[row])

    def _people(self, rows):
        return len({int(self.patients[row]) for row in rows})

    def _sides(self, rows, column, cut, gap_left):
        left = [row for row in rows if self._goes_left(int(self.codes[row, column]), cut, gap_left)]
        chosen = set(left)
        return left, [row for row in rows if row not in chosen]

    def _goes_left(self, code, cut, gap_left):
        return gap_left if code >= self.missing else code <= cut

    def _node(self, rows, depth, way):
        draws, yes = self._sums(rows)
        here = len(self.nodes)
        self.nodes.append((-1, 0, False, draws, yes, self._people(rows)))
        if depth == self.depth or len(rows) < self.fewest or yes in (0, draws):
            return
        found = self._split(rows, way)
        if found is None:
            return
        column, cut, gap_left = found
        self.nodes[here] = (column, cut, gap_left, *self.nodes[here][3:])
        left, right = self._sides(rows, column, cut, gap_left)
        self._node(left, depth + 1, 2 * way)
        self._node(right, depth + 1, 2 * way + 1)

    def _split(self, rows, way):
        best, found = -inf, None
        for tried, column in enumerate(drawn_columns(self.seed, way, self.codes.shape[1])):
            if tried >= self.tries and found is not None:
                break
            quality, cut, gap_left = self._cut(rows, column)
            if quality > best:
                best, found = quality, (column, cut, gap_left)
        return found

    def _cut(self, rows, column):
        """The best cut of all codes of the grid; among equals the roundest, then the lowest, then missing right."""
        there = {int(self.codes[row, column]) for row in rows}
        known = sorted(code for code in there if code < self.missing)
        some = any(code >= self.missing for code in there)
        tried = []
        top = self.cells[column] - 1
        for cut in range(top + 1) if known else []:
            parts_known = known[0] <= cut < known[-1]
            if not parts_known and not (some and cut == top):
                continue
            for gap_left in (False, True) if some and parts_known else (False,):
                left, right = self._sides(rows, column, cut, gap_left)
                if min(len(left), len(right)) < self.least or min(self._people(left), self._people(right)) < self.floor:
                    continue
                place = cut + 1
                told = gap_left if some else len(left) > len(right)
                quality = self.quality(self._sums(left), self._sums(right))
                tried.append((quality, place & -place, -cut, not gap_left, told))
        if not tried:
            return -inf, 0, False
        quality, _, cut, _, told = max(tried)
        return quality, -cut, told
