"""Walking rows through trees: where a slow walk ends, and never past the end of a row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from spinney.forest.traverse import Walker
from tests.spinney.forest.nested import COLUMNS, ROWS, STUMP, TREES, bare, forest_of


def slow_vote(tree, row):
    """What a nested tree says about a row, as the definition reads."""
    while not isinstance(tree, float):
        (feature, threshold, missing_left), left, right = tree
        goes_left = missing_left if np.isnan(row[feature]) else row[feature] <= threshold
        tree = left if goes_left else right
    return tree


@given(TREES, ROWS)
def test_every_row_ends_where_a_slow_walk_ends(nested, table):
    X = np.array(table, dtype=np.float32)
    slow = [[slow_vote(tree, row) for tree in nested] for row in X]
    assert np.array_equal(Walker(forest_of(nested), COLUMNS).votes(X), slow)


@pytest.mark.parametrize("shape", [(3, COLUMNS - 1), (3, COLUMNS + 1), (3, 0), (COLUMNS,), (3, COLUMNS, 1)])
def test_rows_of_another_width_are_refused_before_compiled_code_reads_past_them(shape):
    walker = Walker(bare(STUMP), COLUMNS)
    with pytest.raises(ValueError, match="4 columns"):
        walker.leaves(0, np.zeros(shape, dtype=np.float32))
    with pytest.raises(ValueError, match="4 columns"):
        walker.votes(np.zeros(shape, dtype=np.float32))
