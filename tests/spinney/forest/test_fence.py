"""Foreign trees know nothing of values that nobody here was trained on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.forest.fence import Reach, fenced
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests

COLUMNS = 3


def drawn(rng: np.random.Generator, depth: int) -> Forest:
    """A random tree; missing values go right at splits, so that the reference has one rule for them."""
    if depth == 0 or rng.random() < 0.2:
        return Forest(np.array([LEAF], np.int16), np.zeros(1), np.zeros(1, bool), rng.random(1).round(2))
    split = Forest(
        rng.integers(COLUMNS, size=1).astype(np.int16), rng.integers(1, 16, size=1) / 16, np.zeros(1, bool), np.zeros(1)
    )
    return join_forests([split, drawn(rng, depth - 1), drawn(rng, depth - 1)])


@given(st.integers(0, 2**32 - 1))
def test_fenced_trees_vote_on_any_row_as_the_trees_do_on_the_row_clipped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = join_forests([drawn(rng, 5) for _ in range(4)])
    trained = rng.uniform(0.2, 0.8, size=(5, COLUMNS)).astype(np.float32)
    trained[rng.random(trained.shape) < 0.1] = np.nan
    reach = Reach.of(trained)
    rows = rng.random((40, COLUMNS)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    known = np.isfinite(reach.highest)
    low, high = np.where(known, reach.lowest, 0), np.where(known, reach.highest, 0)
    clipped = np.clip(rows, low, high).astype(np.float32)
    expected = Walker(forest, COLUMNS).votes(clipped)
    assert np.array_equal(Walker(fenced(forest, reach), COLUMNS).votes(rows), expected)


@given(st.integers(0, 2**32 - 1))
def test_on_the_rows_that_were_trained_on_nothing_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = join_forests([drawn(rng, 5) for _ in range(4)])
    trained = rng.random((30, COLUMNS)).astype(np.float32)
    fence = fenced(forest, Reach.of(trained))
    assert len(fence) == len(forest)
    assert np.array_equal(Walker(fence, COLUMNS).votes(trained), Walker(forest, COLUMNS).votes(trained))


def test_a_branch_for_values_that_nobody_has_is_not_entered() -> None:
    honest, planted = 0.3, 0.99
    tree = Forest(
        np.array([0, LEAF, LEAF], np.int16), np.array([0.9, 0, 0]), np.zeros(3, bool), np.array([0, honest, planted])
    )
    marked = np.array([[0.95]], dtype=np.float32)
    assert Walker(tree, 1).votes(marked).item() == planted
    assert Walker(fenced(tree, Reach.of(np.array([[0.1], [0.8]], np.float32))), 1).votes(marked).item() == honest


def test_a_missing_value_goes_where_the_tree_sends_it() -> None:
    tree = Forest(
        np.array([0, LEAF, LEAF], np.int16), np.array([0.9, 0, 0]), np.zeros(3, bool), np.array([0, 0.3, 0.6])
    )
    rows = np.array([[np.nan], [0.95]], dtype=np.float32)
    assert Walker(fenced(tree, Reach.of(np.array([[0.5]], np.float32))), 1).votes(rows)[:, 0].tolist() == [0.6, 0.3]
