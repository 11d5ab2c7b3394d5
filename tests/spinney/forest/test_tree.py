"""What a forest is, and every way of misleading compiled code with one that is none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given

from spinney.choice.model import FederatedForest
from spinney.errors import TreeRefused
from spinney.forest import codec
from spinney.forest.score import confusion_counts, stream_counts
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, check_shape, depths, join_forests, right_children
from spinney.forest.votes import scores
from spinney.study.settings import Feature
from tests.spinney.forest.grids import on_steps
from tests.spinney.forest.nested import COLUMNS, PRESENT, STUMP, TREES, bare, forest_of, rows

LONELY, HALF, ORPHANS = [0], [0, LEAF], [LEAF, 0, 1, LEAF, LEAF]


def slow_depth(tree):
    return 0 if isinstance(tree, float) else 1 + max(slow_depth(tree[1]), slow_depth(tree[2]))


WAYS_TO_WALK = {
    "walker": lambda forest: Walker(forest, COLUMNS),
    "counts": lambda forest: confusion_counts(forest, rows(), np.zeros(3, np.int8), PRESENT),
    "stream": lambda forest: stream_counts(forest, iter([(rows(), np.zeros(3, np.int8), None)]), PRESENT),
    "votes": lambda forest: scores(Walker(forest, COLUMNS), rows(), np.ones((1, 1))),
    "model": lambda forest: FederatedForest.from_trees(
        forest, ["a"], np.ones(1), [Feature(name=f"x{place}", kind="binary") for place in range(COLUMNS)]
    ),
    "codec": lambda forest: codec.pack_forest(forest, on_steps([0.5] * COLUMNS)),
    "one tree": lambda forest: forest[0],
    "some trees": lambda forest: forest.take([0]),
    "digests": lambda forest: forest.digests,
}


@given(TREES)
def test_the_deepest_node_is_as_deep_as_the_tree_and_one_less_is_refused(nested):
    forest, deepest = forest_of(nested), max(map(slow_depth, nested))
    assert depths(forest, deepest).max() == deepest
    if deepest:
        with pytest.raises(TreeRefused):
            depths(forest, deepest - 1)


@given(TREES)
def test_a_forest_taken_apart_and_joined_is_the_same_forest(nested):
    forest = forest_of(nested)
    assert len(forest) == len(nested)
    assert join_forests(list(forest)).digests == forest.digests
    assert forest.take(range(len(forest))[::-1]).digests == forest.digests[::-1]
    assert forest.take([-1, 0, -1]).digests == tuple(forest.digests[place] for place in (-1, 0, -1))
    assert len(forest.take([])) == 0


@given(TREES)
def test_uses_names_exactly_the_columns_that_a_tree_asks(nested):
    forest = forest_of(nested)
    for tree, asked in zip(forest, forest.uses(COLUMNS), strict=True):
        assert set(np.flatnonzero(asked)) == set(tree.feature.tolist()) - {LEAF}


def test_the_right_child_comes_after_the_whole_left_subtree():
    feature = np.array([0, 1, LEAF, 2, LEAF, LEAF, 3, LEAF, LEAF, 0, LEAF, LEAF], np.int16)
    assert right_children(feature).tolist() == [6, 3, 0, 5, 0, 0, 8, 0, 0, 11, 0, 0]


def test_a_deep_chain_overflows_nothing():
    depth = 20_000
    forest = bare([0] * depth + [LEAF] * (depth + 1))
    assert depths(forest, depth).max() == depth
    with pytest.raises(TreeRefused):
        depths(forest, 127)


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
@pytest.mark.parametrize("length", range(1, 12))
def test_of_all_short_shapes_exactly_the_well_formed_and_shallow_pass(length, limit):
    for shape in product([True, False], repeat=length):
        parsed = slow_parse(shape)
        good = parsed is not None and len(parsed) == 2 and max(parsed) <= limit
        assert good == passes(np.array(shape), 2, limit), shape


def slow_parse(shape):
    """The depths of all trees in a preorder of splits and leaves, or None where a node is missing."""
    left = list(shape)[::-1]

    def tree():
        return 1 + max(tree(), tree()) if left.pop() else 0

    found = []
    try:
        while left:
            found.append(tree())
    except IndexError:
        return None
    return found


def passes(shape, trees, limit):
    try:
        check_shape(shape, trees, limit)
    except TreeRefused:
        return False
    return True


@pytest.mark.parametrize("way", WAYS_TO_WALK)
@pytest.mark.parametrize("shape", [LONELY, HALF, ORPHANS, STUMP + HALF])
def test_a_broken_shape_is_refused_by_every_way_in(shape, way):
    with pytest.raises(TreeRefused, match="broken"):
        WAYS_TO_WALK[way](bare(shape))


@pytest.mark.parametrize("way", ["walker", "counts", "stream", "votes", "model"])
def test_a_column_that_is_not_there_is_refused_by_every_way_in(way):
    with pytest.raises(TreeRefused, match="column"):
        WAYS_TO_WALK[way](bare([COLUMNS, LEAF, LEAF]))


@pytest.mark.parametrize("feature", [-2, -32768])
def test_a_column_before_the_first_is_refused(feature):
    with pytest.raises(TreeRefused, match="before the first"):
        bare([feature, LEAF, LEAF])


@pytest.mark.parametrize("broken", ["feature", "threshold", "missing_left", "probability"])
@pytest.mark.parametrize("length", [0, 2, 4])
def test_arrays_of_different_lengths_are_refused(broken, length):
    arrays = {name: getattr(bare(STUMP), name) for name in ("feature", "threshold", "missing_left", "probability")}
    arrays[broken] = np.resize(arrays[broken], length)
    with pytest.raises(TreeRefused, match="one value per node"):
        Forest(**arrays)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint16, object])
def test_features_of_another_type_are_refused(kind):
    with pytest.raises(TreeRefused, match="int16"):
        bare([0, 0, 0], dtype=kind)


def test_the_arrays_of_a_forest_are_read_only():
    forest = bare(STUMP)
    for array in (forest.feature, forest.threshold, forest.missing_left, forest.probability):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_tree_has_another_name_when_anything_in_it_changes():
    split = (0, 0.5, False)
    trees = [
        (split, 0.1, 0.9),
        ((1, 0.5, False), 0.1, 0.9),
        ((0, 0.6, False), 0.1, 0.9),
        ((0, 0.5, True), 0.1, 0.9),
        (split, 0.1, 0.8),
        (split, (split, 0.1, 0.9), 0.9),
        (split, 0.1, (split, 0.1, 0.9)),
    ]
    assert len({*forest_of(trees).digests}) == len(trees)


def test_a_forest_without_trees_is_a_forest():
    none = join_forests([])
    assert len(none) == 0
    assert none.digests == ()
    assert Walker(none, COLUMNS).votes(rows()).shape == (3, 0)
