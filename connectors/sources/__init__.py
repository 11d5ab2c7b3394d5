"""What a source of patients' data is: it is told what a study wants and leaves files in a staging folder.

NDJSON files hold FHIR resources, one per line, as the source has them; Parquet files hold events or patients with the
columns below. Everything after that (parsing, quarantine, units, windows, label) is the same for all sources.

One file here, or an entry point `spinney.sources` of another package, offers one `SOURCE`: the settings of a `kind`,
which say what a person is asked, open the source and try whether it can be reached.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Protocol, Self

from spinney.base import Settings
from spinney.errors import SourceFailed

# A finished table instead of events is asked for under this kind, with its columns as codes.
TABLE = "table"

# Rows of events. In Parquet they may all be text, and a column that is not there is null everywhere.
#
# event      which event of its kind this row is about. Rows with one `event` are one event, counted once, with every
#            code, text, class and discharge that stands in one of them; all else must be the same in all of them. What
#            has a value of its own, such as a component, is an event of its own. Null: the row is an event by itself.
# updated    when this version was written: of an `event` only the rows of its newest version count.
# patient    whose it is.
# kind       resource type; the file says it, too.
# code       system|code.
# time       when it happened or began. A year, a month or a day is written as such (2023, 2023-05, 2023-05-17) and is
#            known at its end; text with a time of day is an instant, in the site's time zone unless it has an offset.
# until      when it ended, written likewise.
# recorded   when it was entered, written likewise; null: unknown.
# value      a number, in `unit`; with `comparator` (<, <=, >=, >) only a bound of it.
# text       a coded value as system|code, or words.
# status     as FHIR says it for the kind, such as finished or active; or why it does not count, such as refuted.
# class      of an encounter, such as IMP.
# encounter  the `event` of the encounter within which it happened. A Condition without `time` and `recorded` is dated
#            by it.
# parent     the `event` of the encounter of which this encounter is a part.
# discharge  where to an encounter's patient was discharged, as system|code.
EVENT_COLUMNS = {
    "event": "VARCHAR",
    "updated": "TIMESTAMP",
    "patient": "VARCHAR",
    "kind": "VARCHAR",
    "code": "VARCHAR",
    "time": "TIMESTAMP",
    "until": "TIMESTAMP",
    "recorded": "TIMESTAMP",
    "value": "DOUBLE",
    "comparator": "VARCHAR",
    "text": "VARCHAR",
    "unit": "VARCHAR",
    "status": "VARCHAR",
    "class": "VARCHAR",
    "encounter": "VARCHAR",
    "parent": "VARCHAR",
    "discharge": "VARCHAR",
}
# Members of groups, where the study asks who is in one: `group` is the study's word for it (system|value) or the site's
# own; `start` and `end` are written as `time` is, and null where nobody knows.
GROUP = "Group"
GROUP_COLUMNS = {"patient": "VARCHAR", "group": "VARCHAR", "start": "TIMESTAMP", "end": "TIMESTAMP"}
# `died` is written as `time` is.
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
    helps: bool = False
    """It only helps to understand the others, as Medications do that orders refer to; a source may have none."""


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
    by_patient: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Notes that count rows: words with {count} -> patient -> rows; told of those only who take part."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Reason -> count, for what a source itself could not use (the parser adds its own)."""
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By input file, what it holds: resources by type, "" what is no resource; nothing: it was not read. Names of
    files may be those of patients: they are shown to people of the site, and go nowhere else."""
    table: Path | None = None
    """A finished table (.parquet) instead of events, where the site's query or file yields that."""


class Progress(Protocol):
    """Told now and then how far a pull is; rows per second and time left are the caller's to show."""

    def __call__(self, kind: str, read: int, total: int | None) -> None: ...


class Source(Protocol):
    """Where a site's data are: files, SQL, FHIR REST, FHIR Bulk Data."""

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        """Leave what is wanted in staging. SourceFailed says what to do next, never a value of a patient's record."""


@dataclass(frozen=True)
class Surroundings:
    """What a source may know of its site besides its own settings."""

    timezone: str = "UTC"
    """Of times that are written without one."""
    store: Callable[[], Path | None] = lambda: None
    """A private folder that stays from night to night, made when it is asked for; None: there is none."""


@dataclass(frozen=True)
class Question:
    """What `spinney site init` asks about a source; the answer is an option of the command, too."""

    name: str
    """A key of the settings, such as base_url."""
    words: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    when: Callable[[Mapping[str, str]], bool] = lambda _answers: True
    """Whether it is asked, by the answers so far."""


class SourceSettings(Settings):
    """The `source` section of site.yaml. A subclass has a `kind` and whatever it needs to find its data."""

    kind: str
    asks: ClassVar[tuple[Question, ...]] = ()

    @abstractmethod
    def open(self, where: Surroundings) -> Source:
        """The source; nothing is connected yet."""

    def reach(self, where: Surroundings) -> str:  # noqa: ARG002
        """What `spinney doctor` says of it after one short try; SourceFailed if it can't be reached."""
        return f"{self.kind}: known by a pull only: spinney site check STUDY"

    @property
    def table_columns(self) -> tuple[str | None, str | None] | None:
        """Where it yields a finished table: the columns of patient and index time, None for one it hasn't got."""
        return None

    def anchored(self, folder: Path) -> Self:
        """These settings with every relative path below the folder of site.yaml."""
        paths = {name: folder / value for name, value in self if isinstance(value, Path)}
        return self.model_copy(update=paths)

    @classmethod
    def starter(cls, answers: Mapping[str, str]) -> str:
        """The section as a first site.yaml has it, with comments. Answers are written as YAML reads them."""
        keys = ("kind", *(ask.name for ask in cls.asks))
        lines = [f"  {key}: {as_yaml(answers[key])}" for key in keys if answers.get(key)]
        return "\n".join(["source:", *lines, ""])


def as_yaml(answer: str) -> str:
    """What somebody has answered, as YAML reads it."""
    return json.dumps(answer, ensure_ascii=False)


def refuse_tables(wanted: Sequence[Wanted], instead: str) -> None:
    """A source of events has no finished table, which a study without a clinical definition asks for."""
    if any(one.kind == TABLE for one in wanted):
        raise SourceFailed(f"the study has no `cohort`, so this site needs {instead}")
