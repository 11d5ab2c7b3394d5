"""Messages as bytes and back: msgpack, typed by the message's own annotations, one form per message.

    bytes = [kind, [value of each field]]      array = [form, shape, bytes]         set = sorted list
    digest = raw bytes                         array of yes and no = packed bits    letter = deflated bytes

How an array's cells are written: `encoding_arrays.py`. Reading never builds what the annotations don't ask for: a
value's first byte is looked at before it is unpacked, and list lengths are counted down, not allocated. What was read
is written again and must give the same bytes.
"""

from __future__ import annotations

import math
import operator
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgpack
import numpy as np

from spinney.errors import Refused
from spinney.federation.seam import Decline, Message
from spinney.house.encoding_arrays import FORMS
from spinney.plugins import ALGORITHMS

LARGEST = 32 * 1024 * 1024
MOST_DIMENSIONS = 4
PLAIN, DEFLATED = b"\0", b"\1"  # how a letter begins
NO_FRAME = -15  # no checksum of zlib's: an envelope has a better one
MOST_CELLS = LARGEST // 8
FIRST_BYTES = {
    bool: frozenset({0xC2, 0xC3}),
    int: frozenset({*range(0x80), *range(0xE0, 0x100), *range(0xCC, 0xD4)}),
    float: frozenset({0xCB}),
    str: frozenset({*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB}),
    bytes: frozenset({0xC4, 0xC5, 0xC6}),
}
HEX = frozenset("0123456789abcdef")
IN_WORDS = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text", bytes: "bytes"}

Plain = TypeVar("Plain")


class MessageRefused(Refused):
    """Bytes that are no message, or not in the one form that it has. Says where, never what."""


def encode_message(message: Message) -> bytes:
    """The bytes of a message."""
    kind = type(message).__name__
    if kinds().get(kind) is not type(message):
        raise TypeError(f"{kind} is no kind of message")
    packer = msgpack.Packer(autoreset=False)
    packer.pack_array_header(2)
    packer.pack(kind)
    _codec(type(message)).write(packer, message)
    written: bytes = packer.bytes()
    return written


def decode_message(data: bytes) -> Message:
    """The message behind the bytes, or MessageRefused."""
    message: Message = _read(data, _read_message)
    return _canonical(message, encode_message(message), data)


def kind_of(letter: bytes) -> str:
    """What the message in a letter says that it is, for the log; the rest is not read."""
    try:
        reader = _Reader(unsqueeze(letter))
        reader.length(2)
        kind = reader.scalar(str)
    except (ValueError, msgpack.UnpackException, Refused):
        kind = ""
    return kind if kind in kinds() else "Nonsense"


def pack(plain: Any) -> bytes:
    """Any dataclass of plain fields that both sides know."""
    packer = msgpack.Packer(autoreset=False)
    _codec(type(plain)).write(packer, plain)
    written: bytes = packer.bytes()
    return written


def unpack(data: bytes, kind: type[Plain]) -> Plain:
    """The dataclass behind the bytes, or MessageRefused."""
    plain: Plain = _read(data, _codec(kind).read)
    return _canonical(plain, pack(plain), data)


def squeeze(data: bytes) -> bytes:
    """A letter: small, and the same bytes for the same content."""
    deflated = zlib.compress(data, 9, NO_FRAME)
    return DEFLATED + deflated if len(deflated) < len(data) else PLAIN + data


def unsqueeze(letter: bytes) -> bytes:
    """What is in a letter; never unpacks more than a message may have."""
    if letter[:1] == PLAIN:
        return letter[1:]
    if letter[:1] != DEFLATED:
        raise MessageRefused("there is no letter, or one of an unknown form")
    unpacker = zlib.decompressobj(NO_FRAME)
    try:
        data = unpacker.decompress(letter[1:], LARGEST + 1)
    except zlib.error:
        raise MessageRefused("the letter is damaged") from None
    if len(data) > LARGEST:
        raise MessageRefused(f"the letter unpacks to more than {LARGEST} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise MessageRefused("the letter ends too early, or something is behind it")
    return data


@cache
def kinds() -> dict[str, type[Message]]:
    """Every kind of message by name: those that all algorithms share, and those that they bring along.

    Of two with one name nobody could tell which is meant. Ours stay; the algorithm that brings another is refused.
    """
    from spinney.federation import messages  # not at the top: keys and rosters need no scikit-learn

    found = {kind.__name__: kind for kind in (*vars(messages).values(), Decline) if _is_kind(kind)}
    for algorithm in ALGORITHMS.values():
        for brought in algorithm.messages:
            found.setdefault(brought.kind.__name__, brought.kind)
    return found


def _is_kind(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Message) and kind is not Message


# ---------------------------------------------------------------------------------------------------------------
# Reading


class _Reader:
    """Takes one value after the other, each only if it has the type that is wanted."""

    def __init__(self, data: bytes) -> None:
        self.data, self.where = data, "message"
        self.unpacker = msgpack.Unpacker(max_buffer_size=len(data))
        self.unpacker.feed(data)

    def scalar(self, kind: type[Any]) -> Any:
        at = self.unpacker.tell()
        if at >= len(self.data):
            raise self.refused("ends too early")
        if self.data[at] not in FIRST_BYTES[kind]:
            raise self.refused(f"is not {IN_WORDS[kind]}")
        return self.unpacker.unpack()

    def length(self, wanted: int | None = None) -> int:
        length: int = self.unpacker.read_array_header()
        if wanted is not None and length != wanted:
            raise self.refused(f"has {length} parts instead of {wanted}")
        return length

    def refused(self, why: str) -> MessageRefused:
        return MessageRefused(f"{self.where} {why}")


def _read(data: bytes, read: Callable[[_Reader], Any]) -> Any:
    if not 0 < len(data) <= LARGEST:
        raise MessageRefused(f"{len(data)} bytes; a message has 1 to {LARGEST}")
    reader = _Reader(data)
    try:
        found = read(reader)
    except (ValueError, msgpack.UnpackException):  # from None: a library's words may quote the content
        raise reader.refused("is damaged, or not of the type that it should be") from None
    if reader.unpacker.tell() != len(data):
        raise MessageRefused("there is something behind the message")
    return found


def _read_message(reader: _Reader) -> Any:
    reader.length(2)
    kind = kinds().get(reader.scalar(str))
    if kind is None:
        raise reader.refused("is of a kind that this house doesn't know; is one of the houses out of date?")
    return _codec(kind).read(reader)


def _canonical(found: Plain, again: bytes, data: bytes) -> Plain:
    if again != data:
        raise MessageRefused(f"{type(found).__name__} is not written in its one proper form")
    return found


# ---------------------------------------------------------------------------------------------------------------
# One codec per annotation


@dataclass(frozen=True)
class _Codec:
    write: Callable[[Any, Any], None]  # packer, value
    read: Callable[[_Reader], Any]


def _codec_of(hint: Any) -> _Codec:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in FIRST_BYTES:
        return _scalar(hint)
    if origin is Annotated and inner == (str, "hex"):
        return _digest()
    if origin is np.ndarray:
        return _array(get_args(inner[1])[0])
    if origin is tuple and inner[-1] is Ellipsis:
        return _many(tuple, _codec(inner[0]))
    if origin is tuple:
        return _fixed([_codec(one) for one in inner])
    if origin is frozenset:
        return _many(frozenset, _codec(inner[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*(_codec(one) for one in inner))
    if is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint)
    raise TypeError(f"{hint} can't travel; see spinney/house/encoding.py for what can")


_codec: Callable[[Any], _Codec] = cache(_codec_of)


def _scalar(kind: type[Any]) -> _Codec:
    def plain(value: Any) -> Any:
        if kind is float and isinstance(value, int):
            return float(value)
        if kind is int and not isinstance(value, (bool, int)):
            return operator.index(value)  # NumPy's whole numbers
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{type(value).__name__} where {IN_WORDS[kind]} should be")
        return value

    return _Codec(lambda packer, value: packer.pack(plain(value)), lambda reader: reader.scalar(kind))


def _digest() -> _Codec:
    """A digest is text in hexadecimal digits here and half as many bytes on the way."""

    def write(packer: Any, value: str) -> None:
        if len(value) % 2 or not HEX.issuperset(value):
            raise TypeError("a digest is written in pairs of small hexadecimal digits")
        packer.pack(bytes.fromhex(value))

    return _Codec(write, lambda reader: reader.scalar(bytes).hex())


def _array(kind: type[np.generic]) -> _Codec:
    name = np.dtype(kind).name
    forms = FORMS[name]

    def write(packer: Any, value: Any) -> None:
        if value.dtype.name != name:
            raise TypeError(f"an array of {value.dtype} where {name} should be")
        cells = np.ascontiguousarray(value, kind).reshape(-1)
        written = ((called, form.write(cells)) for called, form in forms.items())
        called, raw = next((called, raw) for called, raw in written if raw is not None)
        packer.pack([called, list(value.shape), raw])

    def read(reader: _Reader) -> Any:
        reader.length(3)
        form = forms.get(reader.scalar(str))
        if form is None:
            raise reader.refused(f"is not an array of {name}")
        dimensions = reader.length()
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise reader.refused(f"has {dimensions} dimensions, not 1 to {MOST_DIMENSIONS}")
        shape = tuple(reader.scalar(int) for _ in range(dimensions))
        raw, cells = np.frombuffer(reader.scalar(bytes), np.uint8), math.prod(shape)
        if not all(0 <= side <= LARGEST for side in shape) or cells > MOST_CELLS or not form.fits(len(raw), cells):
            raise reader.refused("has another size than its shape says")
        value = form.read(raw, cells).reshape(shape)
        value.setflags(write=False)
        return value

    return _Codec(write, read)


def _many(container: type[Any], item: _Codec) -> _Codec:
    def write(packer: Any, values: Any) -> None:
        packer.pack_array_header(len(values))
        for value in sorted(values) if container is frozenset else values:
            item.write(packer, value)

    return _Codec(write, lambda reader: container([item.read(reader) for _ in range(reader.length())]))


def _fixed(items: list[_Codec]) -> _Codec:
    def write(packer: Any, values: Any) -> None:
        packer.pack_array_header(len(items))
        for item, value in zip(items, values, strict=True):
            item.write(packer, value)

    def read(reader: _Reader) -> Any:
        reader.length(len(items))
        return tuple(item.read(reader) for item in items)

    return _Codec(write, read)


def _mapping(key: _Codec, item: _Codec) -> _Codec:
    def write(packer: Any, values: Any) -> None:
        packer.pack_map_header(len(values))
        for name in sorted(values):
            key.write(packer, name)
            item.write(packer, values[name])

    return _Codec(
        write, lambda reader: {key.read(reader): item.read(reader) for _ in range(reader.unpacker.read_map_header())}
    )


def _dataclass(kind: type[Any]) -> _Codec:
    hints = get_type_hints(kind, include_extras=True)
    parts = {field.name: _codec(hints[field.name]) for field in fields(kind)}

    def write(packer: Any, value: Any) -> None:
        packer.pack_array_header(len(parts))
        for name, part in parts.items():
            part.write(packer, getattr(value, name))

    def read(reader: _Reader) -> Any:
        reader.where = kind.__name__
        reader.length(len(parts))
        found = {}
        for name, part in parts.items():
            reader.where = f"{kind.__name__}.{name}"
            found[name] = part.read(reader)
        return kind(**found)

    return _Codec(write, read)
