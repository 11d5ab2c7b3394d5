"""Forests as nested tuples, and rows for them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from spinney.forest.tree import LEAF, Forest

COLUMNS = 4
PRESENT = np.ones(COLUMNS, dtype=bool)
SPLIT = st.tuples(st.integers(0, COLUMNS - 1), st.floats(0, 1, width=32), st.booleans())
TREES = st.lists(st.recursive(st.floats(0, 1), lambda below: st.tuples(SPLIT, below, below)), min_size=1, max_size=4)
ROWS = st.lists(
    st.lists(st.one_of(st.floats(0, 1, width=32), st.just(float("nan"))), min_size=COLUMNS, max_size=COLUMNS),
    min_size=1,
    max_size=8,
)
STUMP = [0, LEAF, LEAF]


def forest_of(nested):
    """A forest from nested tuples: (split, left, right), or a leaf's probability."""
    nodes = [node for tree in nested for node in _preorder(tree)]
    feature, threshold, missing_left, probability = zip(*nodes, strict=True)
    return Forest(np.array(feature, np.int16), np.array(threshold), np.array(missing_left), np.array(probability))


def _preorder(tree):
    if isinstance(tree, float):
        return [(LEAF, 0.0, False, tree)]
    (feature, threshold, missing_left), left, right = tree
    return [(feature, threshold, missing_left, 0.0), *_preorder(left), *_preorder(right)]


def bare(feature, dtype=np.int16):
    """A forest whose shape nobody has checked."""
    nodes = len(feature)
    return Forest(np.array(feature, dtype), np.zeros(nodes), np.zeros(nodes, bool), np.zeros(nodes))


def rows(number=3, columns=COLUMNS):
    return np.zeros((number, columns), dtype=np.float32)
