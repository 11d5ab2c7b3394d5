"""Files that are there already: NDJSON (also .gz) and bundles with FHIR resources, or a finished table (CSV, Parquet).

What a file holds is told by its content. NDJSON files of one resource type are used where they are; bundles and files
with several types are unpacked into staging first. Every file of the folder is told, also one that is of no use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, Self

from pydantic import Field, model_validator

from spinney.connectors.fhir.contents import NO_RESOURCE, Contents, contents_of, may_hold_resources, unpacked
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
TABLES = (".csv", ".csv.gz", ".parquet")


STARTER = """\
# FHIR resources in a folder: NDJSON (also .gz) or bundles, whatever the files are called. For a finished table write
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
        held: dict[str, dict[str, int]] = {}
        with _Unpacking(staging, kinds, progress) as unpacking:
            for path in _paths(self.settings.path or Path()):
                contents = contents_of(path) if _is_json(path) else Contents()
                held[path.name + ("/" if path.is_dir() else "")] = dict(contents.holds)
                if contents.only is not None and contents.only in kinds:
                    files[contents.only].append(path)
                elif kinds & contents.holds.keys():
                    unpacking.add(path)
                else:
                    unpacking.broken += contents.holds[NO_RESOURCE]
        for kind, path in unpacking.files.items():
            files[kind].append(path)
        if not any(files.values()):
            raise SourceFailed(
                f"{self.settings.path} holds no {_either(kinds)}{_instead(held)}; look at path in site.yaml"
            )
        quarantined = {"not a FHIR resource": unpacking.broken} if unpacking.broken else {}
        return Pulled(
            {kind: tuple(paths) for kind, paths in files.items() if paths}, quarantined=quarantined, held=held
        )


def _either(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds))


def _instead(held: Mapping[str, Mapping[str, int]]) -> str:
    """What is there, where what is wanted is not. No names: they may be those of patients."""
    counts: Counter[str] = Counter()
    for holds in held.values():
        counts.update({kind or "things that are no FHIR resource": number for kind, number in holds.items()})
    unknown = sum(not holds for holds in held.values())
    words = [f"{number:,} {kind}" for kind, number in counts.most_common(5)]
    words += [f"{unknown:,} files whose content is unknown"] if unknown else []
    return f", but {', '.join(words)}" if words else ""


class _Unpacking:
    """Resources of bundles and mixed files, sorted by type into staging."""

    def __init__(self, staging: Path, kinds: set[str], progress: Progress) -> None:
        self._staging, self._kinds, self._progress = staging, kinds, progress
        self._open: dict[str, BinaryIO] = {}
        self._written: Counter[str] = Counter()
        self.files: dict[str, Path] = {}
        self.broken = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def add(self, path: Path) -> None:
        for kind, line in unpacked(path):
            if kind == NO_RESOURCE:
                self.broken += 1
            if kind not in self._kinds:
                continue
            if kind not in self._open:
                self.files[kind] = self._staging / f"{kind}.unpacked.ndjson"
                self._open[kind] = self.files[kind].open("wb")
            self._open[kind].write(line + b"\n")
            self._written[kind] += 1
            if self._written[kind] % 10_000 == 0:
                self._progress(kind, self._written[kind], None)


def _is_json(path: Path) -> bool:
    return path.is_file() and (path.name.endswith(NDJSON + BUNDLES) or may_hold_resources(path))


def _paths(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.iterdir())
    return [_existing(path, NDJSON + BUNDLES)]


def _existing(path: Path, endings: tuple[str, ...]) -> Path:
    if not path.exists():
        raise SourceFailed(f"{path} is not there; mend the path in site.yaml")
    if not path.name.endswith(endings):
        raise SourceFailed(f"{path.name} can't be read; it should end in {', '.join(endings)}")
    return path


SOURCE = FilesSettings
