"""Looks for somebody in everything that a night has left behind: in files, databases and packed forms of them."""

from __future__ import annotations

import base64
import gzip
import io
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ZSTD, GZIP, ZIP, PARQUET, SQLITE = b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"SQLite format 3\x00"
LARGEST_UNPACKED = 2**28


class Marks:
    """Words and a number that belong to one patient, in every form that they might have."""

    def __init__(self, words: Mapping[str, str], number: float) -> None:
        forms = {name: [*_written(word)] for name, word in words.items()}
        forms["number"] = [*_written(repr(number)), *(struct.pack(how, number) for how in ("<d", ">d", "<f"))]
        self.forms = forms

    def found_in(self, data: bytes) -> list[str]:
        """Names of the marks in some bytes, whatever they are packed in."""
        found = set()
        for view in _views(data):
            found |= {name for name, forms in self.forms.items() if any(form in view for form in forms)}
        return sorted(found)

    def found_below(self, folders: Iterable[Path], *, without: Iterable[Path] = ()) -> dict[str, list[str]]:
        """By file: the marks in it or in its name."""
        left_out = tuple(without)
        found = {}
        for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
            if any(path.is_relative_to(one) for one in left_out) or path.is_symlink() or not path.is_file():
                continue
            marks = sorted({*self.found_in(str(path).encode()), *self.found_in(path.read_bytes())})
            if path.read_bytes()[:16] == SQLITE:  # a text may lie across pages, and the newest is beside the file
                marks = sorted({*marks, *self.found_in(rows_of(path))})
            if marks:
                found[str(path)] = marks
        return found


def _written(word: str) -> Iterator[bytes]:
    """As UTF-8, UTF-16, hexadecimal digits and Base64, wherever it begins in a group of three bytes."""
    yield word.encode()
    yield word.encode("utf-16-le")
    yield word.encode().hex().encode()
    for before in range(3):
        packed = base64.b64encode(bytes(before) + word.encode())
        yield packed[4 if before else 0 : len(packed) // 4 * 4 - 4]


def _views(data: bytes, depth: int = 0) -> Iterator[bytes]:
    yield data
    if depth == 3:
        return
    for inside in _unpacked(data):
        yield from _views(inside, depth + 1)


def _unpacked(data: bytes) -> Iterator[bytes]:
    """What is packed in it; something that only looks packed holds nothing."""
    try:
        if data.startswith(GZIP):
            yield gzip.decompress(data)
        elif data.startswith(ZSTD):
            yield pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
        elif data[:1] == b"\x78":
            yield zlib.decompressobj().decompress(data, LARGEST_UNPACKED)
        elif data.startswith(ZIP):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for name in archive.namelist():
                    yield archive.read(name)
        elif data.startswith(PARQUET):
            for column in pq.read_table(io.BytesIO(data)).columns:
                yield b"".join(bytes(one) for chunk in column.chunks for one in chunk.buffers() if one is not None)
                yield "\n".join(map(str, column.to_pylist())).encode()
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, pa.ArrowException):
        return


def rows_of(path: Path) -> bytes:
    """Everything in a database."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return "\n".join(database.iterdump()).encode(errors="surrogatepass")
