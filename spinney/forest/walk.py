"""Rows of codes through trees, compiled. What a row has to do with a node is one number and no branch.

A block of rows goes down a tree level by level: no row waits for another, so the processor walks many at once. A leaf
sends every row to itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, inlined

Array = NDArray[Any]

BLOCK = 512  # rows, with their codes and places, in the nearest cache
PARTS = 256  # of 0..1: where a value's cuts are looked for
CUT, SHIFT, STEP, RIGHT = 16, 33, 34, 35  # where in a node's number its parts begin; first of all is its column
U = np.uint64  # numbers that can't be negative: an index that could be is looked at twice
COLUMN_BITS, CUT_BITS = U((1 << CUT) - 1), U((1 << (SHIFT - CUT)) - 1)
AT_CUT, AT_SHIFT, AT_STEP, AT_RIGHT, ONE = U(CUT), U(SHIFT), U(STEP), U(RIGHT), U(1)
FLOATS, ROWS = "Array(float64, 1, 'C', readonly=True)", "Array(float32, 2, 'A', readonly=True)"  # or not readonly
KINDS = ("uint8", "uint16")


def node_words(column: Array, cut: Array, missing_left: Array, right: Array, leaf: Array, missing: int) -> Array:
    """Nodes as numbers; `right` is how far away a right child is.

    A row goes left where its code is not above the cut. `missing` is the highest code; where missing values go left,
    one is added to both, and the highest code begins anew at 0.
    """
    shift = (missing_left & ~leaf).astype(np.int64)
    limit = np.where(leaf, missing, cut + shift).astype(np.int64)
    asked = np.where(leaf, 0, column).astype(np.int64)
    away = np.where(leaf, 0, right).astype(np.int64)
    words = asked | limit << CUT | shift << SHIFT | (~leaf).astype(np.int64) << STEP | away << RIGHT
    return words.astype(np.uint64)


@compiled(*(f"void({ROWS}, {FLOATS}, int64[::1], uint16[:, ::1], int64, {kind}[:, ::1])" for kind in KINDS))
def code_rows(rows: Array, cuts: Array, first: Array, starts: Array, missing: Any, codes: Array) -> None:
    """How many of its column's cuts each value is above; `missing` where it is none.

    `starts` (columns x parts of 0..1) says how many cuts lie below each part: the search begins there.
    """
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            value = np.float64(rows[row, column])
            if np.isnan(value):
                codes[row, column] = missing
                continue
            part = U(min(max(value, 0.0) * PARTS, PARTS - 1.0))
            code = np.int64(starts[column, part]) if value > 0.0 else 0
            here, last = first[column], first[column + 1]
            while here + code < last and cuts[here + code] < value:
                code += 1
            codes[row, column] = code


@inlined
def _descend(codes: Array, words: Array, root: Any, depth: Any, begin: Any, size: Any, missing: Any, at: Array) -> None:
    """Where so many rows end, as nodes of all trees, in the first places of `at`."""
    wide = U(codes.shape[1])
    flat, first = codes.reshape(codes.size), U(begin) * wide
    for row in range(size):
        at[row] = root
    for _ in range(depth):
        place = first
        for row in range(size):
            node = U(at[row])
            word = words[node]
            code = (U(flat[place + (word & COLUMN_BITS)]) + ((word >> AT_SHIFT) & ONE)) & U(missing)
            place += wide
            left = code <= ((word >> AT_CUT) & CUT_BITS)
            at[row] = np.uint32(node + (((word >> AT_STEP) & ONE) if left else (word >> AT_RIGHT)))


SIGNATURE = "void({}[:, ::1], uint64[::1], int64[::1], int64[::1], int64, "


@compiled(*(SIGNATURE.format(kind) + "int64[:, ::1])" for kind in KINDS))
def find_leaves(codes: Array, words: Array, roots: Array, depths: Array, missing: Any, leaves: Array) -> None:
    """The leaf of every row (second axis) in every tree (first axis), as a node of all trees."""
    at = np.empty(BLOCK, np.uint32)
    for begin in range(0, len(codes), BLOCK):
        end = min(begin + BLOCK, len(codes))
        for tree in range(len(roots)):
            _descend(codes, words, roots[tree], depths[tree], begin, end - begin, missing, at)
            leaves[tree, begin:end] = at[: end - begin]


@compiled(*(SIGNATURE.format(kind) + f"{FLOATS}, float64[:, ::1])" for kind in KINDS))
def find_votes(
    codes: Array, words: Array, roots: Array, depths: Array, missing: Any, said: Array, votes: Array
) -> None:
    """What every tree (first axis) says of every row (second axis)."""
    at = np.empty(BLOCK, np.uint32)
    for begin in range(0, len(codes), BLOCK):
        end = min(begin + BLOCK, len(codes))
        for tree in range(len(roots)):
            _descend(codes, words, roots[tree], depths[tree], begin, end - begin, missing, at)
            for row in range(begin, end):
                votes[tree, row] = said[U(at[row - begin])]


@compiled(
    *(
        SIGNATURE.format(kind) + "uint8[::1], uint16[:, ::1], boolean[:, ::1], boolean[::1], int64[:, ::1], "
        "int64[:, ::1])"
        for kind in KINDS
    )
)
def count_yes(
    codes: Array,
    words: Array,
    roots: Array,
    depths: Array,
    missing: Any,
    says_yes: Array,
    cells: Array,
    seen: Array,
    looked_at: Array,
    yes: Array,
    gone: Array,
) -> None:
    """Per tree and cell, on how many rows a tree says yes, and how many rows don't count for it.

    `cells` (repeats x rows) says to which cells a row belongs. `seen` (trees that are `looked_at` x rows) says which
    rows don't count for a tree.
    """
    at, says = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.int64)
    for begin in range(0, len(codes), BLOCK):
        end = min(begin + BLOCK, len(codes))
        place = 0
        for tree in range(len(roots)):
            _descend(codes, words, roots[tree], depths[tree], begin, end - begin, missing, at)
            for row in range(begin, end):
                says[row - begin] = says_yes[U(at[row - begin])]
            if looked_at[tree]:
                for row in range(begin, end):
                    if seen[place, row]:
                        says[row - begin] = 0
                        for repeat in range(len(cells)):
                            gone[tree, cells[repeat, row]] += 1
                place += 1
            for repeat in range(len(cells)):
                for row in range(begin, end):
                    yes[tree, cells[repeat, row]] += says[row - begin]
