"""Files that are there already: NDJSON (also .gz) and bundles with FHIR resources, or a finished table (CSV, Parquet).

NDJSON files that are named after a resource type are used where they are. Bundles and files with several types are
unpacked into staging first.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

from pydantic import Field, model_validator

from spinney.connectors.fhir.shelf import lines_in
from spinney.connectors.sources import (
    Progress,
    Pulled,
    Question,
    Source,
    SourceSettings,
    Surroundings,
    Wanted,
    as_yaml,
    refuse_tables,
)
from spinney.errors import SourceFailed

NDJSON = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz")
BUNDLES = (".json", ".json.gz")
LARGEST_BUNDLE = 64 * 2**20  # in memory it is some eight times as large
TABLES = (".csv", ".csv.gz", ".parquet")
TYPE = re.compile(r"(?:^|[._-])([A-Z][A-Za-z]+)(?=[._-]|$)")


STARTER = """\
# FHIR resources in a folder: NDJSON (also .gz) named after their type, or bundles. For a finished table write
# `table: cohort.csv` (or .parquet) instead of `path`.
source:
  kind: files
  path: {path}
"""


class FilesSettings(SourceSettings):
    """Files in a folder of this site."""

    asks = (Question("path", "Folder with FHIR resources"),)

    kind: Literal["files"] = "files"
    path: Path | None = Field(
        None, description="Folder or file with FHIR resources: .ndjson, .ndjson.gz, .json bundles."
    )
    table: Path | None = Field(None, description="A finished table instead: .csv, .csv.gz or .parquet.")
    patient_column: str | None = Field("patient", description="Who a row of the table belongs to; null: one row each.")
    index_time_column: str | None = Field(
        "index_time", description="Index time of a row of the table; null: it has none."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.path is None) == (self.table is None):
            raise ValueError("files need either path (FHIR resources) or table (a finished table)")
        return self

    def open(self, where: Surroundings) -> Source:  # noqa: ARG002
        return Files(self)

    def reach(self, where: Surroundings) -> str:  # noqa: ARG002
        path = self.path or self.table
        if path is None or not path.exists():
            raise SourceFailed(f"{path} is not there; mend source in site.yaml")
        return str(path.resolve())

    @property
    def table_columns(self) -> tuple[str | None, str | None] | None:
        return (self.patient_column, self.index_time_column) if self.table else None

    @classmethod
    def starter(cls, answers: Mapping[str, str]) -> str:
        return STARTER.format(path=as_yaml(answers["path"]))


class Files:
    """Reads what other programs left in a folder."""

    def __init__(self, settings: FilesSettings) -> None:
        self.settings = settings

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        if self.settings.table is not None:
            return Pulled(table=_existing(self.settings.table, TABLES))
        refuse_tables(wanted, "`table`, not `path`")
        kinds = {one.kind for one in wanted}
        files: dict[str, list[Path]] = {kind: [] for kind in sorted(kinds)}
        others = []
        for path in _paths(self.settings.path or Path()):
            kind = resource_kind(path)
            if kind in kinds:
                files[kind].append(path)
            elif kind is None:
                others.append(path)
        with _Unpacked(staging, kinds, progress) as unpacked:
            for path in others:
                unpacked.add(path)
        for kind, path in unpacked.files.items():
            files[kind].append(path)
        if not any(files.values()):
            raise SourceFailed(f"{self.settings.path} holds no {' or '.join(sorted(kinds))}; look at path in site.yaml")
        quarantined = {"not a FHIR resource": unpacked.broken} if unpacked.broken else {}
        return Pulled({kind: tuple(paths) for kind, paths in files.items() if paths}, quarantined=quarantined)


def resource_kind(path: Path) -> str | None:
    """The resource type in the name of an NDJSON file, such as Observation.000.ndjson.gz; None: not told."""
    if not path.name.endswith(NDJSON):
        return None
    found = TYPE.findall(path.name.removesuffix(".gz").rpartition(".")[0])
    return found[0] if len(found) == 1 else None


class _Unpacked:
    """Resources of bundles and mixed files, sorted by type into staging."""

    def __init__(self, staging: Path, kinds: set[str], progress: Progress) -> None:
        self._staging, self._kinds, self._progress = staging, kinds, progress
        self._open: dict[str, BinaryIO] = {}
        self.files: dict[str, Path] = {}
        self.read: Counter[str] = Counter()
        self.broken = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def add(self, path: Path) -> None:
        for resource in self._resources(path):
            kind = resource.get("resourceType")
            if not isinstance(kind, str) or kind not in self._kinds:
                continue
            if kind not in self._open:
                self.files[kind] = self._staging / f"{kind}.unpacked.ndjson"
                self._open[kind] = self.files[kind].open("wb")
            self._open[kind].write(json.dumps(resource, separators=(",", ":")).encode() + b"\n")
            self.read[kind] += 1
            if self.read[kind] % 10_000 == 0:
                self._progress(kind, self.read[kind], None)

    def _resources(self, path: Path) -> Iterator[Mapping[str, Any]]:
        try:
            with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
                texts = lines_in(file) if path.name.endswith(NDJSON) else iter([_whole(file, path)])
                for text in texts:
                    try:
                        yield from _inside(json.loads(text))
                    except (ValueError, RecursionError):  # no JSON, or one that nests without end
                        self.broken += 1
        except (OSError, EOFError, zlib.error):
            raise SourceFailed(f"{path.name} can't be read; is it whole?") from None


def _whole(file: BufferedIOBase, path: Path) -> bytes:
    """A bundle, if it is not too large; what is packed is unpacked no further than that."""
    content = file.read(LARGEST_BUNDLE + 1)
    if len(content) > LARGEST_BUNDLE:
        raise SourceFailed(
            f"{path.name} is larger than {LARGEST_BUNDLE // 2**20} MiB unpacked, and a bundle is read as a whole; "
            "split it, or write NDJSON, which is streamed"
        )
    return content


def _inside(content: Any) -> Iterator[Mapping[str, Any]]:
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
                yield resource if "id" in resource or not name else {**resource, "id": name}
    elif isinstance(content, dict):
        yield content
    else:
        raise ValueError("no resource")


def _paths(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file() and file.name.endswith(NDJSON + BUNDLES))
    return [_existing(path, NDJSON + BUNDLES)]


def _existing(path: Path, endings: tuple[str, ...]) -> Path:
    if not path.exists():
        raise SourceFailed(f"{path} is not there; mend the path in site.yaml")
    if not path.name.endswith(endings):
        raise SourceFailed(f"{path.name} can't be read; it should end in {', '.join(endings)}")
    return path


SOURCE = FilesSettings
