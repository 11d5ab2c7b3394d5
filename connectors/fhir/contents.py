"""What a file of FHIR resources holds, by its content: people and programs name files as they like.

A file of one type is recognised by looking for line ends that are not followed by that type's first words, a block at
a time, which costs next to nothing beside parsing it.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

from spinney.connectors.fhir.shelf import content_of, lines_in
from spinney.errors import SourceFailed

LARGEST_BUNDLE = 64 * 2**20  # in memory it is some eight times as large
BLOCK = 2**20
GZIP = b"\x1f\x8b"
JSON_BEGINS = (b"", b"{", b"[")
MARK = codecs.BOM_UTF8
NO_RESOURCE = ""
"""What stands for the type of something that is no FHIR resource."""
_FIRST = re.compile(rb'\s*\{\s*"resourceType"\s*:\s*"([A-Za-z]+)"')


class FoundResource(NamedTuple):
    """A resource in a file."""

    kind: str
    """Its type; NO_RESOURCE: it is none."""
    line: bytes
    """As one line of JSON."""


@dataclass
class Contents:
    """How many resources of each type a file holds, and whether it can be read where it is: plain lines of one type."""

    holds: Counter[str] = field(default_factory=Counter)
    lines: bool = True

    @property
    def only(self) -> str | None:
        """The one type that its lines have; None: none or several, or they are not lines."""
        kinds = self.holds.keys() - {NO_RESOURCE}
        return next(iter(kinds)) if self.lines and len(kinds) == 1 else None


def contents_of(path: Path) -> Contents:
    """Look through a whole file, .gz or not. SourceFailed if it can't be read."""
    with _opened(path) as file:
        counted = _of_one_type(file)
        marked = _is_marked(path)
    as_named = _is_packed(path) == (path.suffix == ".gz")  # DuckDB goes by the name
    if counted is not None:
        counted.lines = as_named and not marked
        return counted
    lines = _has_lines(path)
    contents = Contents(lines=lines and as_named and not marked)
    for kind, line in resources_in(path, whole=not lines):
        if kind == "Bundle":
            contents.lines = False
            contents.holds.update(one.kind for one in _inside(content_of(line)))
        else:
            contents.holds[kind] += 1
    return contents


def may_hold_resources(path: Path) -> bool:
    """Whether a file, whatever it is called, begins as resources do."""
    try:
        with _opened(path) as file:
            block = file.read(BLOCK).lstrip()
    except SourceFailed:
        return False
    return block[:1] in (b"{", b"[") and b'"resourceType"' in block


def unpacked(path: Path) -> Iterator[FoundResource]:
    """Every resource of a file, also those in bundles; what is no resource comes as NO_RESOURCE."""
    for found in resources_in(path, whole=not _has_lines(path)):
        if found.kind == "Bundle":
            yield from _inside(content_of(found.line))
        else:
            yield found


def resources_in(path: Path, *, whole: bool) -> Iterator[FoundResource]:
    """What stands in the lines of a file, or in a file that is one document."""
    with _opened(path) as file:
        if whole:
            yield from _inside(_document(file, path))
            return
        for line in lines_in(file):
            first = _FIRST.match(line)
            yield FoundResource(first[1].decode() if first else _kind_of(content_of(line)), line)


def _of_one_type(file: BufferedIOBase) -> Contents | None:
    """The count of a file of which every line begins with the same type; None: look closer."""
    block = file.read(BLOCK)
    first = _FIRST.match(block)
    if first is None or first[1] == b"Bundle" or not block.startswith(b"{"):
        return None
    opening = b"\n" + first[0]
    lines = found = 0
    rest = b"\n"
    while block:
        text = rest + block
        found += text.count(opening)
        lines += block.count(b"\n")
        rest, last = text[1 - len(opening) :], block[-1:]
        block = file.read(BLOCK)
    if last != b"\n":
        lines += 1
    return Contents(Counter({first[1].decode(): found})) if lines == found else None


def _has_lines(path: Path) -> bool:
    """Whether a file has one JSON object in each line, or is one document: its first lines tell."""
    with _opened(path) as file:
        lines = lines_in(file)
        first, second = next(lines, b""), next(lines, b"")
    if content := content_of(first):
        return bool(second) or _kind_of(content) != "Bundle"
    return not first or bool(content_of(second))


def _document(file: BufferedIOBase, path: Path) -> Any:
    """A bundle or a resource, if it is not too large; what is packed is unpacked no further than that."""
    content = file.read(LARGEST_BUNDLE + 1)
    if len(content) > LARGEST_BUNDLE:
        raise SourceFailed(
            f"{path.name} is larger than {LARGEST_BUNDLE // 2**20} MiB unpacked, and a bundle is read as a whole; "
            "split it, or write NDJSON, which is streamed"
        )
    try:
        return json.loads(content)
    except (ValueError, RecursionError):  # no JSON, or one that nests without end
        return None


def _inside(content: Any) -> Iterator[FoundResource]:
    """The resources of a bundle, a list or a single resource. An entry without an id takes it from its address."""
    if isinstance(content, list):
        for one in content:
            yield from _inside(one)
    elif isinstance(content, dict) and content.get("resourceType") == "Bundle":
        entries = content.get("entry")
        for entry in entries if isinstance(entries, list) else ():
            resource = entry.get("resource") if isinstance(entry, dict) else None
            if isinstance(resource, dict):
                address = str(entry.get("fullUrl") or "")
                name = re.split(r"[/:]", address)[-1]
                yield from _inside(resource if "id" in resource or not name else {**resource, "id": name})
    elif isinstance(content, dict):
        yield FoundResource(_kind_of(content), json.dumps(content, separators=(",", ":")).encode())
    else:
        yield FoundResource(NO_RESOURCE, b"")


def _kind_of(content: dict[str, Any]) -> str:
    kind = content.get("resourceType")
    return kind if isinstance(kind, str) else NO_RESOURCE


@contextmanager
def _opened(path: Path) -> Iterator[BufferedIOBase]:
    """A file to read behind its mark, unpacked where it is packed; what goes wrong is told without what it holds."""
    try:
        with gzip.open(path, "rb") if _is_packed(path) else path.open("rb") as file:
            if file.peek(len(MARK))[: len(MARK)] == MARK:
                file.read(len(MARK))
            yield file
    except (OSError, EOFError, zlib.error):
        raise SourceFailed(f"{path.name} can't be read; is it whole?") from None


def _is_packed(path: Path) -> bool:
    """By its first bytes; a file that is called packed and is neither that nor JSON is broken."""
    with path.open("rb") as file:
        first = file.read(64)
    if path.suffix == ".gz" and first[: len(GZIP)] != GZIP and first.removeprefix(MARK).lstrip()[:1] not in JSON_BEGINS:
        raise OSError
    return first[: len(GZIP)] == GZIP


def _is_marked(path: Path) -> bool:
    """Whether a file begins with a mark of its byte order, as some of Windows do; DuckDB takes it for text."""
    with gzip.open(path, "rb") if _is_packed(path) else path.open("rb") as file:
        return file.read(len(MARK)) == MARK
