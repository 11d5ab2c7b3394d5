"""The bytes of a forest, version 2. No pickle: a header, then five packed streams under one zlib.

    magic "SPNY" | version u8 | columns u16 | trees u32 | nodes u32 | digest of the grid, 8 bytes | zlib of
    shape bits | features | missing bits | places of cuts, low bytes then high bytes | probability codes, likewise

Header and limits fix every stream's length before anything is unpacked, so a forged size allocates nothing. The shape
is unpacked and checked first, alone: nothing else of a tree that is too deep or too large is ever in memory. Then the
rest is checked before any array is used: features that the study names, codes inside the grid.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.errors import TreeRefused
from spinney.forest.export import Rounding
from spinney.forest.tree import LEAF, Forest, check_shape, tree_ends
from spinney.study.settings import ForestSettings

MAGIC, VERSION = b"SPNY", 2
HEADER = struct.Struct("<4sBHII8s")
NODE_BYTES_AT_MOST = 8
NODE_MEMORY_AT_MOST = 48
WRONG_LENGTH = "the packed part has another length than the header says"


@dataclass(frozen=True)
class TreeLimits:
    """What a forest may be at most: from the study, not from the sender."""

    trees: int
    depth: int
    nodes: int = 8_000_000
    leaves: int = 8_000_000  # of one tree

    @classmethod
    def of(cls, settings: ForestSettings) -> TreeLimits:
        """What the study says."""
        return cls(settings.trees, settings.max_depth, settings.most_nodes, settings.most_leaves)

    @property
    def message_bytes(self) -> int:
        """Longer input is refused unread."""
        return HEADER.size + self.nodes * NODE_BYTES_AT_MOST + 1024

    @property
    def memory_bytes(self) -> int:
        """Decoding never takes more memory than this, whatever the sender wrote."""
        return self.nodes * NODE_MEMORY_AT_MOST + (1 << 20)


def grid_digest(rounding: Rounding) -> bytes:
    """Two houses that round differently must not misread each other."""
    words = hashlib.blake2b(struct.pack("<d", rounding.probability), digest_size=8)
    words.update(rounding.cells.astype("<u4").tobytes())
    for cuts in rounding.cuts:
        words.update(np.ascontiguousarray(cuts, dtype="<f8").data)
    return words.digest()


def pack_forest(forest: Forest, rounding: Rounding) -> bytes:
    """The forest's bytes."""
    trees, split = len(forest), forest.feature != LEAF
    features = forest.feature[split]
    places = rounding.nearest(features, forest.threshold[split])
    if not np.array_equal(rounding.thresholds(features, places), forest.threshold[split]):
        raise TreeRefused("thresholds are not on the study's grid; moved now, a leaf could fall below the floor")
    shares = np.rint(forest.probability[~split] / rounding.probability)
    streams = [
        np.packbits(split).tobytes(),
        _planes(features, _feature_bytes(len(rounding.cuts))),
        np.packbits(forest.missing_left[split]).tobytes(),
        _planes(places, _place_bytes(rounding)),
        _planes(shares, _share_bytes(rounding)),
    ]
    columns, grid = len(rounding.cuts), grid_digest(rounding)
    head = HEADER.pack(MAGIC, VERSION, columns, trees, len(forest.feature), grid)
    return head + zlib.compress(b"".join(streams), 9)


def unpack_forest(data: bytes, rounding: Rounding, limits: TreeLimits) -> Forest:
    """The forest behind the bytes, or TreeRefused with the reason."""
    trees, nodes = _read_header(data, rounding, limits)
    leaves = (nodes + trees) // 2
    splits = nodes - leaves
    columns = len(rounding.cuts)
    sizes = [
        (nodes + 7) // 8,
        splits * _feature_bytes(columns),
        (splits + 7) // 8,
        splits * _place_bytes(rounding),
        leaves * _share_bytes(rounding),
    ]
    packed = _Packed(data[HEADER.size :])
    split = _bits(packed.take(sizes[0]), nodes)
    check_shape(split, trees, limits.depth)
    _check_leaves(split, limits.leaves)
    raw = packed.rest(sum(sizes[1:]))
    at = np.cumsum([0, *sizes[1:]])
    features, missing, thresholds, shares = (raw[at[i] : at[i + 1]] for i in range(4))

    asked = _checked(_unplaned(features, splits), columns - 1, "a feature that the study doesn't name", "feature")
    most = rounding.cells[asked] - 1
    codes = _checked(_unplaned(thresholds, splits), most, "a threshold that is none of the feature's cuts", "threshold")
    most_share = np.rint(1 / rounding.probability)
    said = _checked(_unplaned(shares, leaves), most_share, "a probability outside 0..1", "probability")

    feature, missing_left = np.full(nodes, LEAF, dtype=np.int16), np.zeros(nodes, dtype=bool)
    threshold, probability = np.zeros(nodes), np.zeros(nodes)
    feature[split] = asked
    missing_left[split] = _bits(missing, splits)
    threshold[split] = rounding.thresholds(asked.astype(np.int16), codes)
    probability[~split] = np.minimum(said * rounding.probability, 1.0)
    return Forest(feature, threshold, missing_left, probability)


def _read_header(data: bytes, rounding: Rounding, limits: TreeLimits) -> tuple[int, int]:
    if len(data) > limits.message_bytes:
        raise TreeRefused(f"{len(data)} bytes are more than the limit of {limits.message_bytes}", "size")
    if len(data) < HEADER.size:
        raise TreeRefused("too short to be a forest")
    magic, version, columns, trees, nodes, grid = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise TreeRefused("not a forest")
    if version != VERSION:
        raise TreeRefused(f"format version {version}; this house reads version {VERSION}", "version")
    if columns != len(rounding.cuts) or grid != grid_digest(rounding):
        raise TreeRefused("made for another study: columns or rounding differ", "study")
    if not (trees or not nodes) or trees > limits.trees:
        raise TreeRefused(f"{trees} trees; the study allows {limits.trees}", "trees")
    if not trees <= nodes <= limits.nodes or (nodes - trees) % 2:
        raise TreeRefused(f"{nodes} nodes can't be {trees} trees within the limit of {limits.nodes}", "nodes")
    return trees, nodes


class _Packed:
    """What the packed part says, as far as it is asked for; never unpacks more than that."""

    def __init__(self, packed: bytes) -> None:
        self._unpacker, self._packed = zlib.decompressobj(), packed

    def take(self, size: int) -> NDArray[np.uint8]:
        """The next bytes, or refuse."""
        raw = self._next(size)
        if len(raw) != size:
            raise TreeRefused(WRONG_LENGTH)
        return np.frombuffer(raw, dtype=np.uint8)

    def rest(self, size: int) -> NDArray[np.uint8]:
        """All that is left, or refuse where that is not so many bytes."""
        raw = self._next(size + 1)
        if len(raw) != size or not self._unpacker.eof or self._unpacker.unused_data:
            raise TreeRefused(WRONG_LENGTH)
        return np.frombuffer(raw, dtype=np.uint8)

    def _next(self, most: int) -> bytes:
        try:
            raw = self._unpacker.decompress(self._packed, most)
        except zlib.error:
            raise TreeRefused("the packed part is damaged") from None
        self._packed = self._unpacker.unconsumed_tail
        return raw


def _check_leaves(split: NDArray[np.bool_], most: int) -> None:
    """Refuse a well-formed preorder of splits and leaves in which a tree has more leaves than it may have."""
    ends = tree_ends(np.where(split, 1, -1).astype(np.int8))
    largest = (int(np.diff(ends, prepend=0).max(initial=0)) + 1) // 2
    if largest > most:
        raise TreeRefused(f"a tree has {largest} leaves; the study allows {most}", "leaves")


def _feature_bytes(columns: int) -> int:
    return 1 if columns <= 256 else 2


def _place_bytes(rounding: Rounding) -> int:
    return 1 if rounding.cells.max(initial=0) <= 256 else 2


def _share_bytes(rounding: Rounding) -> int:
    return 1 if 1 / rounding.probability <= 255 else 2


def _planes(values: NDArray[np.float64] | NDArray[np.int16] | NDArray[np.int64], width: int) -> bytes:
    """Low bytes first, then high bytes: each plane packs better than the mixture."""
    return np.ascontiguousarray(values.astype("<u2").view(np.uint8).reshape(-1, 2).T[:width]).tobytes()


def _unplaned(raw: NDArray[np.uint8], count: int) -> NDArray[np.uint16]:
    values = np.zeros(count, dtype=np.uint16)
    for place in range(len(raw) // count if count else 0):
        values |= raw[place * count : (place + 1) * count].astype(np.uint16) << (8 * place)
    return values


def _bits(raw: NDArray[np.uint8], count: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(raw)
    if bits[count:].any():
        raise TreeRefused("padding is not empty")
    return bits[:count].view(bool)


def _checked(
    codes: NDArray[np.uint16], most: float | NDArray[np.float64] | NDArray[np.int64], fault: str, rule: str
) -> NDArray[np.uint16]:
    outside = int(np.count_nonzero(codes > most))
    if outside:
        raise TreeRefused(f"{fault} ({outside} times)", rule)
    return codes
