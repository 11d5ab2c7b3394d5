"""The bytes of a forest: what goes in comes out, and what a stranger sends is refused or is a valid forest."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.errors import TreeRefused
from spinney.forest.codec import HEADER, MAGIC, VERSION, TreeLimits, grid_digest, pack_forest, unpack_forest
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.study.settings import ForestSettings
from tests.spinney.forest.grids import on_steps

STEPS = [1 / 1000, 0.5, 0.3, 1 / 65_535, 0.6]
GRID = on_steps(STEPS)
COARSE = on_steps([0.5], 0.23)
WIDE = on_steps([1 / 1000] * 300, 0.001)
NARROW = on_steps([1 / 65, 0.5, 1 / 256], 0.01)
LIMITS = TreeLimits(trees=50, depth=8, nodes=20_000)
TREES, NODES, CODES = slice(7, 11), slice(11, 15), HEADER.size


def random_forest(grid, seed, trees=5, depth=8, density=0.7):
    """Trees whose every number is on the grid."""
    rng = np.random.default_rng(seed)
    shape = []

    def sprout(left):
        split = left > 0 and rng.random() < density
        shape.append(split)
        if split:
            sprout(left - 1)
            sprout(left - 1)

    for _ in range(trees):
        sprout(depth)
    split = np.array(shape)
    feature = np.where(split, rng.integers(0, len(grid.cuts), len(split)), LEAF).astype(np.int16)
    place = (rng.random(len(split)) * grid.cells[feature]).astype(int)
    threshold = np.where(split, grid.thresholds(feature, np.where(split, place, 0)), 0.0)
    probability = np.where(split, 0.0, grid.share(rng.random(len(split)).round()))
    probability = np.where(split | (rng.random(len(split)) < 0.2), probability, grid.share(rng.random(len(split))))
    return Forest(feature, threshold, split & (rng.random(len(split)) < 0.5), np.where(split, 0.0, probability))


def streams_of(data):
    """The header's numbers and the unpacked rest."""
    return HEADER.unpack(data[: HEADER.size]), zlib.decompress(data[HEADER.size :])


def message(trees, nodes, raw, grid=GRID, version=VERSION, columns=None):
    head = HEADER.pack(MAGIC, version, len(grid.cuts) if columns is None else columns, trees, nodes, grid_digest(grid))
    return head + zlib.compress(raw)


def crafted(bits, features, missing, thresholds, shares, trees, nodes, grid=GRID):
    """A message of exactly these streams (one byte per feature and per share, thresholds as 16-bit codes)."""
    low, high = bytes(code & 255 for code in thresholds), bytes(code >> 8 for code in thresholds)
    packed = [np.packbits(np.array(each, dtype=bool)).tobytes() for each in (bits, missing)]
    return message(trees, nodes, packed[0] + bytes(features) + packed[1] + low + high + bytes(shares), grid)


def stump(**changed):
    parts = {
        "bits": [1, 0, 0],
        "features": [0],
        "missing": [0],
        "thresholds": [499],
        "shares": [10, 90],
        "trees": 1,
        "nodes": 3,
    }
    return crafted(**{**parts, **changed})


def assert_valid(forest, grid, limits):
    """Everything that anybody may rely on, checked the slow way."""
    assert 1 <= len(forest) <= limits.trees
    assert len(forest.feature) <= limits.nodes
    split = forest.feature != LEAF
    assert ((forest.feature >= LEAF) & (forest.feature < len(grid.cuts))).all()
    for column, threshold in zip(forest.feature[split], forest.threshold[split], strict=True):
        assert threshold in grid.cuts[column]
    assert np.isfinite(forest.threshold).all()
    assert np.array_equal(grid.share(forest.probability), forest.probability)
    assert ((forest.probability >= 0) & (forest.probability <= 1)).all()
    assert not forest.probability[split].any()
    assert not forest.threshold[~split].any()
    assert not forest.missing_left[~split].any()
    for tree in forest:
        assert slow_subtree(tree.feature, 0, limits.depth) == len(tree.feature)


def slow_subtree(feature, node, left):
    """One past the last node below; fails below the limit of depth or beyond the end."""
    assert left >= 0
    if feature[node] == LEAF:
        return node + 1
    return slow_subtree(feature, slow_subtree(feature, node + 1, left - 1), left - 1)


def slow_leaf(tree, row):
    node = 0
    while tree.feature[node] != LEAF:
        value = row[tree.feature[node]]
        goes_left = tree.missing_left[node] if np.isnan(value) else value <= tree.threshold[node]
        node = node + 1 if goes_left else slow_subtree(tree.feature, node + 1, 99)
    return node


def assert_refused_or_valid(data, grid=GRID, limits=LIMITS):
    """The only two things that may happen to a stranger's bytes. Says whether they were taken."""
    try:
        forest = unpack_forest(data, grid, limits)
    except TreeRefused:
        return False
    assert_valid(forest, grid, limits)
    table = np.random.default_rng(len(data)).random((3, len(grid.cuts)), dtype=np.float32)
    table[0, 0] = np.nan
    walker = Walker(forest, len(grid.cuts))
    for place, tree in enumerate(forest):
        assert walker.leaves(place, table).tolist() == [slow_leaf(tree, row) for row in table]
    return True


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("feature", "threshold", "missing_left", "probability")
    )


@pytest.mark.parametrize("grid", [GRID, COARSE, WIDE, NARROW], ids=["fine", "coarse", "wide", "narrow"])
@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(0, 8), st.floats(0, 0.95))
def test_what_goes_in_comes_out(grid, seed, trees, depth, density):
    forest = random_forest(grid, seed, trees, depth, density)
    if len(forest.feature) <= LIMITS.nodes:
        back = unpack_forest(pack_forest(forest, grid), grid, LIMITS)
        assert same(back, forest)
        assert back.digests == forest.digests


def test_equal_forests_have_equal_bytes():
    assert pack_forest(random_forest(GRID, 1), GRID) == pack_forest(random_forest(GRID, 1), GRID)


def test_another_version_is_refused_by_its_number():
    _, raw = streams_of(stump())
    with pytest.raises(TreeRefused, match="version 1; this house reads version 2"):
        unpack_forest(message(1, 3, raw, version=1), GRID, LIMITS)


@pytest.mark.parametrize(
    "foreign",
    [
        on_steps([1 / 999, *STEPS[1:]]),
        on_steps(STEPS, 0.02),
        on_steps(STEPS[:-1]),
        on_steps([*STEPS, 0.5]),
        on_steps(STEPS[::-1]),
    ],
)
def test_a_forest_on_another_grid_is_refused(foreign):
    with pytest.raises(TreeRefused, match="another study"):
        unpack_forest(pack_forest(random_forest(GRID, 1), GRID), foreign, LIMITS)


def test_thresholds_off_the_grid_do_not_leave_the_house():
    forest = random_forest(GRID, 1)
    moved = Forest(forest.feature, forest.threshold + 1e-5, forest.missing_left, forest.probability)
    with pytest.raises(TreeRefused, match="grid"):
        pack_forest(moved, GRID)


def test_a_plain_stump_passes():
    forest = unpack_forest(stump(), GRID, LIMITS)
    assert forest.feature.tolist() == [0, LEAF, LEAF]
    assert forest.threshold.tolist() == [0.5, 0, 0]
    assert forest.probability.tolist() == [0, 0.1, 0.9]


@pytest.mark.parametrize(
    ("attack", "reason"),
    {
        "a feature beyond the last": ({"features": [5]}, "feature"),
        "the highest feature": ({"features": [255]}, "feature"),
        "a threshold above the range": ({"thresholds": [1000]}, "threshold"),
        "a threshold above a coarse range": ({"features": [1], "thresholds": [2]}, "threshold"),
        "the highest threshold": ({"thresholds": [65_535]}, "threshold"),
        "a probability above one": ({"shares": [10, 101]}, "probability"),
        "the highest probability": ({"shares": [255, 10]}, "probability"),
        "padding behind the shape": ({"bits": [1, 0, 0, 1]}, "padding"),
        "padding behind the missing": ({"missing": [1, 1]}, "padding"),
        "leaves before splits": ({"bits": [0, 0, 1]}, "no leaf"),
        "a split at the end": ({"bits": [0, 1, 0]}, "no leaf"),
        "only leaves": ({"bits": [0, 0, 0]}, "1 trees were announced and 3 came"),
        "only splits": ({"bits": [1, 1, 1]}, "no leaf"),
        "one feature too many": ({"features": [0, 0]}, "length"),
        "one share too few": ({"shares": [10]}, "length"),
        "no trees": ({"trees": 0}, "0 trees"),
        "trees beyond the study": ({"trees": 51, "nodes": 53}, "the study allows 50"),
        "more trees than came": ({"trees": 3, "nodes": 3}, "3 trees were announced and 1 came"),
        "a count of nodes that no tree has": ({"nodes": 4}, "4 nodes"),
        "fewer nodes than trees": ({"trees": 5, "nodes": 3}, "3 nodes"),
        "more nodes than came": ({"nodes": 5}, "1 trees were announced and 3 came"),
        "nodes beyond the limit": ({"nodes": 20_001}, "limit of 20000"),
    }.values(),
)
def test_a_forged_stump_is_refused_with_the_reason(attack, reason):
    with pytest.raises(TreeRefused, match=reason):
        unpack_forest(stump(**attack), GRID, LIMITS)


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("place", [TREES, NODES])
def test_huge_and_negative_counts_in_the_header_are_refused(place, count):
    data = bytearray(stump())
    data[place] = struct.pack("<I", count)
    with pytest.raises(TreeRefused):
        unpack_forest(bytes(data), GRID, LIMITS)


@pytest.mark.parametrize("data", [b"", b"SPNY", b"\x80\x04\x95pickle" * 9, MAGIC + bytes(HEADER.size), bytes(64)])
def test_what_is_no_forest_is_refused(data):
    with pytest.raises(TreeRefused):
        unpack_forest(data, GRID, LIMITS)


def test_every_truncation_is_refused():
    data = pack_forest(random_forest(GRID, 3), GRID)
    for end in range(len(data)):
        with pytest.raises(TreeRefused):
            unpack_forest(data[:end], GRID, LIMITS)


@pytest.mark.parametrize("tail", [b"\0", b"x" * 100, zlib.compress(b"more")])
def test_bytes_behind_the_end_are_refused(tail):
    with pytest.raises(TreeRefused, match="length"):
        unpack_forest(stump() + tail, GRID, LIMITS)


def test_input_longer_than_the_limit_is_refused_unread():
    with pytest.raises(TreeRefused, match="more than the limit"):
        unpack_forest(bytes(LIMITS.message_bytes + 1), GRID, LIMITS)


def test_a_packed_part_with_a_dictionary_is_refused():
    packer = zlib.compressobj(zdict=b"words that the reader doesn't have")
    packed = packer.compress(streams_of(stump())[1]) + packer.flush()
    with pytest.raises(TreeRefused, match="damaged"):
        unpack_forest(stump()[: HEADER.size] + packed, GRID, LIMITS)


@pytest.mark.parametrize("depth", [9, 10, 5000])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_chain_deeper_than_the_limit_is_refused(side, depth):
    bits = [1] * depth + [0] * (depth + 1) if side == "left" else [1, 0] * depth + [0]
    chain = crafted(bits, [0] * depth, [0] * depth, [1] * depth, [1] * (depth + 1), 1, 2 * depth + 1)
    with pytest.raises(TreeRefused, match="deeper than the limit of 8"):
        unpack_forest(chain, GRID, LIMITS)


def test_a_chain_just_within_the_limit_passes():
    depth = LIMITS.depth
    chain = crafted([1, 0] * depth + [0], [0] * depth, [0] * depth, [1] * depth, [1] * (depth + 1), 1, 2 * depth + 1)
    assert len(unpack_forest(chain, GRID, LIMITS).feature) == 2 * depth + 1


def test_a_tree_with_more_leaves_than_the_study_allows_is_refused():
    forest = join_forests([random_forest(GRID, 3, trees=1, depth=3, density=1.0), random_forest(GRID, 4, 1, 4, 1.0)])
    data = pack_forest(forest, GRID)
    assert len(unpack_forest(data, GRID, TreeLimits(trees=2, depth=8, leaves=16))) == 2
    with pytest.raises(TreeRefused, match="a tree has 16 leaves; the study allows 15"):
        unpack_forest(data, GRID, TreeLimits(trees=2, depth=8, leaves=15))


def test_a_study_s_limits_let_its_own_fullest_forest_pass_and_nothing_beyond():
    limits = TreeLimits.of(ForestSettings(trees=3, max_depth=5))
    assert limits == TreeLimits(trees=3, depth=5, nodes=3 * 63, leaves=32)
    assert len(unpack_forest(pack_forest(random_forest(GRID, 5, 3, 5, 1.0), GRID), GRID, limits)) == 3
    for trees, depth in ((4, 4), (1, 6)):
        with pytest.raises(TreeRefused):
            unpack_forest(pack_forest(random_forest(GRID, 5, trees, depth, 1.0), GRID), GRID, limits)
    assert TreeLimits.of(ForestSettings(trees=3, max_depth=5, max_leaves=9)).nodes == 3 * 17


@pytest.mark.parametrize("column", range(len(GRID.cuts)))
def test_every_threshold_code_that_passes_is_an_ordinary_number_within_the_range(column):
    cuts = GRID.cuts[column]
    codes = range(len(cuts))
    stumps = len(codes)
    data = crafted([1, 0, 0] * stumps, [column] * stumps, [0] * stumps, codes, [0, 9] * stumps, stumps, 3 * stumps)
    thresholds = unpack_forest(data, GRID, TreeLimits(trees=stumps, depth=1)).threshold[::3]
    assert np.array_equal(thresholds, cuts)
    assert thresholds.min() > 1e-6
    assert thresholds.max() == 1
    with pytest.raises(TreeRefused, match="threshold"):
        unpack_forest(stump(features=[column], thresholds=[len(cuts)]), GRID, LIMITS)


@pytest.mark.parametrize("grid", [GRID, COARSE], ids=["fine", "coarse"])
def test_the_share_codes_that_pass_are_those_of_the_grid(grid):
    taken = [
        share for share in range(256) if assert_refused_or_valid(crafted([0], [], [], [], [share], 1, 1, grid), grid)
    ]
    assert taken == list(range(round(1 / grid.probability) + 1))


def bomb(trees, nodes):
    """A chain, all zeros but for its shape: few bytes that unpack to the largest forest the header may announce."""
    splits = (nodes - trees) // 2
    shape = np.packbits(np.arange(nodes) < splits).tobytes()
    rest = splits + (splits + 7) // 8 + 2 * splits + nodes - splits
    return message(trees, nodes, shape + bytes(rest))


def peak_of_decoding(data, limits):
    tracemalloc.start()
    try:
        with pytest.raises(TreeRefused):
            unpack_forest(data, GRID, limits)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_message_with_a_huge_header_allocates_next_to_nothing():
    limits = TreeLimits(trees=100, depth=32)
    data = message(100, limits.nodes, bytes(1000))
    assert peak_of_decoding(data, limits) < 1 << 20


def test_a_zip_bomb_stops_where_the_header_says():
    data = message(1, 1001, bytes(100_000_000))
    assert len(data) < LIMITS.message_bytes
    assert peak_of_decoding(data, LIMITS) < 2 << 20


@pytest.mark.parametrize("depth", [8, 32])
def test_a_bomb_of_the_allowed_size_stays_within_the_declared_memory(depth):
    limits = TreeLimits(trees=100, depth=depth, nodes=1_000_000)
    data = bomb(100, limits.nodes)
    assert len(data) < limits.nodes / 100
    assert peak_of_decoding(data, limits) < limits.memory_bytes


def test_of_trees_that_are_too_deep_only_the_shape_is_ever_in_memory():
    limits = TreeLimits(trees=100, depth=12, nodes=1_000_000)
    assert peak_of_decoding(bomb(100, limits.nodes), limits) < 8 * limits.nodes  # all of it takes five times as much


def test_an_honest_forest_of_the_allowed_size_stays_within_the_declared_memory():
    forest = random_forest(GRID, 5, trees=40, density=1.0)
    data = pack_forest(forest, GRID)
    limits = TreeLimits(trees=40, depth=8, nodes=len(forest.feature))
    tracemalloc.start()
    unpack_forest(data, GRID, limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limits.memory_bytes


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_valid(data):
    assert_refused_or_valid(data)
    assert_refused_or_valid(stump()[:CODES] + data)


@settings(max_examples=300)
@given(st.integers(1, 6), st.integers(0, 12), st.data())
def test_random_streams_under_a_fitting_header_are_refused_or_valid(trees, splits, data):
    leaves = trees + splits
    raw = data.draw(st.lists(st.booleans(), min_size=splits + leaves, max_size=splits + leaves))
    sizes = [splits, (splits + 7) // 8, 2 * splits, leaves]
    rest = [data.draw(st.lists(st.integers(0, 101), min_size=size, max_size=size)) for size in sizes]
    assert_refused_or_valid(message(trees, splits + leaves, np.packbits(raw).tobytes() + b"".join(map(bytes, rest))))


def test_thousands_of_damaged_messages_are_refused_or_valid():
    rng = np.random.default_rng(0)
    whole = pack_forest(random_forest(GRID, 8, trees=3, depth=5), GRID)
    taken = sum(assert_refused_or_valid(mutated(whole, rng)) for _ in range(3000))
    assert taken < 30  # nearly all damage shows in the checksum of the packed part


def test_thousands_of_forged_streams_are_refused_or_valid():
    rng = np.random.default_rng(1)
    forest = random_forest(GRID, 8, trees=3, depth=4)
    _, raw = streams_of(pack_forest(forest, GRID))
    taken = 0
    for _ in range(4000):
        forged = mutated(raw, rng, keep_length=True)
        taken += assert_refused_or_valid(message(len(forest), len(forest.feature), forged))
    assert 200 < taken < 3800  # both ends are reached: this fuzz has teeth


def mutated(data, rng, keep_length=False):
    """A few bytes changed; or cut, doubled or swapped."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(out)))
        way = rng.integers(3 if keep_length else 6)
        if way == 0:
            out[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            out[at] = int(rng.choice([0, 1, 5, 100, 101, 127, 128, 255]))
        elif way == 2:
            other = int(rng.integers(len(out)))
            out[at], out[other] = out[other], out[at]
        elif way == 3 and len(out) > 1:
            del out[at : at + int(rng.integers(1, 9))]
        elif way == 4:
            out[at:at] = out[at : at + int(rng.integers(1, 9))]
        else:
            out[at:at] = rng.bytes(int(rng.integers(1, 9)))
        if not out:
            return b""
    return bytes(out)


def test_many_forests_in_one_message_keep_their_order():
    forests = [random_forest(GRID, seed, trees=2) for seed in range(5)]
    back = unpack_forest(pack_forest(join_forests(forests), GRID), GRID, LIMITS)
    assert back.digests == tuple(digest for forest in forests for digest in forest.digests)
