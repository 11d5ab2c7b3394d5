"""What a source of patients' data is: it is told what a study wants and leaves files in a staging folder.

NDJSON files hold FHIR resources, one per line, as the source has them; Parquet files hold events or patients with the
columns below. Everything after that (parsing, quarantine, units, windows, label) is the same for all sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

# A finished table instead of events is asked for under this kind, with its columns as codes.
TABLE = "table"

# One row per event and coding. `time` is when it happened, `recorded` when it was entered (null: unknown).
# In Parquet they may all be text; a time without an offset is in the site's time zone.
EVENT_COLUMNS = {
    "patient": "VARCHAR",
    "kind": "VARCHAR",
    "code": "VARCHAR",
    "time": "TIMESTAMP",
    "until": "TIMESTAMP",
    "recorded": "TIMESTAMP",
    "value": "DOUBLE",
    "text": "VARCHAR",
    "unit": "VARCHAR",
    "status": "VARCHAR",
    "class": "VARCHAR",
}
PATIENT_COLUMNS = {"patient": "VARCHAR", "birth": "DATE", "sex": "VARCHAR", "died": "TIMESTAMP"}


@dataclass(frozen=True)
class Wanted:
    """What the study needs of one resource type, pushed down to the source where it can."""

    kind: str
    """Resource type: Patient, Encounter, Observation ..."""
    codes: tuple[str, ...] = ()
    """"system|code" in the site's own terms; empty: all."""
    since: datetime | None = None
    """Only events from here on (UTC)."""
    until: datetime | None = None
    """Only events up to here (UTC)."""


@dataclass(frozen=True)
class Pulled:
    """What a source left in the staging folder."""

    files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """By kind: resources (.ndjson, .ndjson.gz), or rows (.parquet) with EVENT_COLUMNS; Patient: PATIENT_COLUMNS."""
    read: Mapping[str, int] = field(default_factory=dict)
    """Resources or rows read, by kind."""
    newest: datetime | None = None
    """Newest `lastUpdated` or export time that the source tells (UTC); where an incremental pull goes on."""
    notes: tuple[str, ...] = ()
    """What the report should say, such as "no recording time in this source"."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Reason -> count, for what a source itself could not use (the parser adds its own)."""
    table: Path | None = None
    """A finished table (.parquet) instead of events, where the site's query or file yields that."""


class Progress(Protocol):
    """Told now and then how far a pull is; rows per second and time left are the caller's to show."""

    def __call__(self, kind: str, read: int, total: int | None) -> None: ...


class Source(Protocol):
    """Where a site's data are: files, SQL, FHIR REST, FHIR Bulk Data."""

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled: ...
