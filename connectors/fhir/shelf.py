"""NDJSON files by resource type in which every resource stands once, in its newest version.

What was seen is kept as 16-byte hashes in a SQLite file, so memory stays small however many resources come. A line that
a newer one replaces stays in the file until `close` rewrites it, which is rarely needed.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

LONGEST_LINE = 32 * 2**20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Resource(NamedTuple):
    """One resource as it is put on the shelf."""

    kind: str
    id: str
    updated: int
    """Microseconds since 1970 of meta.lastUpdated; 0: not told."""
    line: bytes


class Shelf:
    """Resources in `folder/<Type>.ndjson`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.newest: dict[str, int] = {}
        self._files: dict[str, BinaryIO] = {}
        self._ends: Counter[str] = Counter()
        self._index = folder / "seen.sqlite"
        self._index.unlink(missing_ok=True)
        self._db = sqlite3.connect(self._index, isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-65536;"
            "CREATE TABLE seen (key BLOB PRIMARY KEY, updated INT, place INT, search INT) WITHOUT ROWID;"
            "CREATE TABLE replaced (kind TEXT, place INT, PRIMARY KEY (kind, place)) WITHOUT ROWID;"
            "BEGIN"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
        self._db.close()
        self._index.unlink(missing_ok=True)

    def put(self, resource: Resource, search: int = 0) -> bool:
        """Keep a resource unless a version as new is there. True: this search brings it for the first time."""
        kind, id, updated, _ = resource
        key = _key(kind, id)
        self.newest[kind] = max(self.newest.get(kind, 0), updated)
        fresh = (key, updated, self._ends[kind], search)
        if self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?)", fresh).rowcount:
            self._append(resource)
            self.counts[kind] += 1
            return True
        known = self._db.execute("SELECT updated, place, search FROM seen WHERE key = ?", (key,)).fetchone()
        known_updated, place, known_search = known
        if updated > known_updated:
            self._db.execute("INSERT INTO replaced VALUES (?, ?)", (kind, place))
            self._db.execute("UPDATE seen SET updated = ?, place = ? WHERE key = ?", (updated, self._ends[kind], key))
            self._append(resource)
        if known_search == search:
            return False
        self._db.execute("UPDATE seen SET search = ? WHERE key = ?", (search, key))
        return True

    def bury(self, kind: str, id: str) -> None:
        """Note that a resource was deleted, so that no older version of it is added."""
        self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, 0, -1, 0)", (_key(kind, id),))

    def add_older(self, resource: Resource) -> None:
        """Keep a resource of an earlier collection, unless this one has it or has buried it."""
        key = _key(resource.kind, resource.id)
        if self._db.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone() is None:
            self._append(resource)
            self.counts[resource.kind] += 1

    def close(self) -> dict[str, tuple[Path, ...]]:
        """Finish the files: by type, where its resources are."""
        for kind, file in self._files.items():
            file.close()
            self._drop_replaced(kind)
        return {kind: (self._path(kind),) for kind in self._files}

    def touch(self, kind: str) -> None:
        """Make sure that a file is there, empty if nothing comes."""
        if kind not in self._files:
            self._files[kind] = self._path(kind).open("wb")

    def _append(self, resource: Resource) -> None:
        self.touch(resource.kind)
        self._files[resource.kind].write(resource.line + b"\n")
        self._ends[resource.kind] += len(resource.line) + 1

    def _drop_replaced(self, kind: str) -> None:
        places = self._db.execute("SELECT place FROM replaced WHERE kind = ? AND place >= 0 ORDER BY place", (kind,))
        gone = places.fetchone()
        if gone is None:
            return
        path, kept = self._path(kind), self._path(kind).with_suffix(".kept")
        with path.open("rb") as old, kept.open("wb") as new:
            place = 0
            for line in old:
                if gone is not None and gone[0] == place:
                    gone = places.fetchone()
                else:
                    new.write(line)
                place += len(line)
        kept.replace(path)

    def _path(self, kind: str) -> Path:
        return self.folder / f"{kind}.ndjson"


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of an NDJSON file without empty ones; what is longer than any resource should be comes cut off."""
    with path.open("rb") as file:
        yield from lines_in(file)


def lines_in(file: BufferedIOBase) -> Iterator[bytes]:
    """The lines of an open NDJSON file, none of them empty or longer than a resource may be."""
    while line := file.readline(LONGEST_LINE):
        rest = line
        while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE)
        if line := line.strip():
            yield line


def from_line(line: bytes, kind: str) -> Resource:
    """A resource from its NDJSON line. A line that is none goes under `kind`: the parser puts it in quarantine."""
    return from_content(content_of(line), line, kind)


def content_of(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; empty if it is none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def from_content(content: dict[str, Any], line: bytes, kind: str) -> Resource:
    name, id, meta = content.get("resourceType"), content.get("id"), content.get("meta")
    updated = microseconds(meta.get("lastUpdated")) if isinstance(meta, dict) else 0
    if not isinstance(id, str) or not id:
        id = "no id " + blake2b(line, digest_size=16).hexdigest()
    return Resource(name if isinstance(name, str) else kind, id, updated, line)


def microseconds(instant: object) -> int:
    """A FHIR instant as microseconds since 1970; 0 if it is none."""
    when = parse_instant(instant)
    return 0 if when is None else (when - EPOCH) // (EPOCH.resolution)


def parse_instant(instant: object) -> datetime | None:
    """A FHIR instant in UTC; None if it is none."""
    try:
        when = datetime.fromisoformat(str(instant))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _key(kind: str, id: str) -> bytes:
    return blake2b(f"{kind}/{id}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
