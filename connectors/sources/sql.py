"""Any database that SQLAlchemy speaks to: queries of the site yield patients and events, or the finished table.

Rows are streamed through a server-side cursor into Parquet, in one read-only transaction, so that all queries see the
same state. Values are written as text and judged by the one parser that all sources share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from sqlalchemy import Connection, CursorResult, text

from spinney.connectors.database import (
    Database,
    address_below,
    batches,
    bound_moment,
    checked_address,
    run_statement,
    write_texts,
)
from spinney.connectors.sources import (
    EVENT_COLUMNS,
    GROUP,
    GROUP_COLUMNS,
    PATIENT_COLUMNS,
    TABLE,
    Progress,
    Pulled,
    Question,
    Source,
    SourceSettings,
    Surroundings,
    Wanted,
    as_yaml,
)
from spinney.errors import SourceFailed
from spinney.study.definition import Kind

LONG_AGO = datetime(1850, 1, 1, tzinfo=UTC)
PLAIN_COLUMNS = ("patient", "index_time")
OTHER_COLUMNS = {"Patient": PATIENT_COLUMNS, GROUP: GROUP_COLUMNS}
NEEDED = {"Patient": ["patient"], GROUP: ["patient", "group"]}
STARTER = """\
# A database that SQLAlchemy reaches. It is only read, in one transaction. :since and :until bound the time.
source:
  kind: sql
  url: {url}
{secret}
  # Columns: patient, birth, sex, died.
  patients: |
    SELECT patient, birth, sex, died FROM patients
  # A query for each resource type that the study names. Columns: patient, code (as system|code), time, and where you
  # have them event, updated, until, recorded, value, comparator, text, unit, status, class, encounter, parent and
  # discharge. Rows with the same `event` are one event with several codes. A day without a time of day is selected as
  # a DATE or as text, never as midnight.
  events:
    Encounter: |
      SELECT patient, code, time, until, status, class FROM encounters WHERE time BETWEEN :since AND :until
    Observation: |
      SELECT patient, code, time, recorded, value, unit FROM observations WHERE time BETWEEN :since AND :until
  # Only for a study with `member_of`. Columns: patient, group, and where you have them start and end.
  # groups: |
  #   SELECT patient, registry AS "group", entered AS "start", left_on AS "end" FROM registries
"""


class SqlSettings(SourceSettings):
    """A database, and the queries that yield its part of the study."""

    asks = (
        Question("url", "Address of the database, without a password, such as postgresql+psycopg://reader@db/his"),
        Question("secret_env", "Environment variable with the password (empty: none)", default=""),
    )

    kind: Literal["sql"] = "sql"
    url: str = Field(description="SQLAlchemy address without a password, such as postgresql+psycopg://reader@db/his.")
    password_env: str | None = Field(None, description="Environment variable that holds the password.")
    patients: str | None = Field(None, description="Query that yields patient, birth, sex and died.")
    events: dict[Kind, str] = Field(
        {},
        description="By resource type, a query. Columns: patient and time, and where you have them "
        + f"{', '.join(column for column in EVENT_COLUMNS if column not in ('patient', 'time', 'kind'))}.",
    )
    groups: str | None = Field(
        None, description="Query that yields patient, group, start and end, for a study that asks who is in a group."
    )
    table: str | None = Field(None, description="One query instead that yields the finished table.")
    timeout_minutes: float = Field(60, gt=0, description="Longest time for one query, where the database can tell.")

    @field_validator("url")
    @classmethod
    def _has_no_password(cls, value: str) -> str:
        return checked_address(value)

    @model_validator(mode="after")
    def _events_or_table(self) -> Self:
        if bool(self.events) == (self.table is not None):
            raise ValueError("sql needs either events (with patients) or table")
        if self.groups is not None and self.table is not None:
            raise ValueError("groups belongs to events; a finished table has its population already")
        return self

    def open(self, where: Surroundings) -> Source:
        return Sql(self, where.timezone)

    def reach(self, where: Surroundings) -> str:
        with Sql(self, where.timezone).database.connected() as connection:
            return f"{connection.dialect.name} answers"

    @property
    def table_columns(self) -> tuple[str | None, str | None] | None:
        return PLAIN_COLUMNS if self.table else None

    def anchored(self, folder: Path) -> Self:
        return self.model_copy(update={"url": address_below(folder, self.url)})

    @classmethod
    def starter(cls, answers: Mapping[str, str]) -> str:
        variable = answers.get("secret_env")
        secret = f"  password_env: {as_yaml(variable)}" if variable else "  # password_env: HIS_PASSWORD"
        return STARTER.format(url=as_yaml(answers["url"]), secret=secret)


class Sql:
    """Runs the site's queries."""

    def __init__(self, settings: SqlSettings, timezone: str = "UTC") -> None:
        self.settings = settings
        self.database = Database(settings.url, settings.password_env, settings.timeout_minutes, timezone)

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        files: dict[str, tuple[Path, ...]] = {}
        read: dict[str, int] = {}
        notes: list[str] = []
        with self.database.connected() as connection:
            for one in wanted:
                query = self._query(one.kind)
                if query is None:
                    notes += [] if one.helps else [f"{one.kind}: no query for it in site.yaml"]
                    continue
                path = staging / f"{one.kind}.parquet"
                with closing(self._run(connection, query, one)) as result:
                    read[one.kind] = _write(result, one, path, progress)
                files[one.kind] = (path,)
        table = files.pop(TABLE, (None,))[0]
        return Pulled(files, read, notes=tuple(notes), table=table)

    def _query(self, kind: str) -> str | None:
        if kind == TABLE and self.settings.table is None:
            raise SourceFailed("the study has no `cohort`, so this site needs one query under `table`, not `events`")
        of_events: Mapping[str, str] = {str(name): query for name, query in self.settings.events.items()}
        own = {TABLE: self.settings.table, "Patient": self.settings.patients, GROUP: self.settings.groups}
        return own.get(kind, of_events.get(kind))

    def _run(self, connection: Connection, query: str, wanted: Wanted) -> CursorResult[Any]:
        statement = text(query)
        moments = {"since": wanted.since or LONG_AGO, "until": wanted.until or datetime.now(UTC)}
        asked = statement.compile().params.keys()
        if unknown := sorted(set(asked) - set(moments)):
            raise SourceFailed(f"query for {wanted.kind}: unknown parameter :{unknown[0]}; known are :since and :until")
        bound = {key: bound_moment(moments[key], connection.dialect.name) for key in asked}
        return run_statement(connection, statement, bound, f"query for {wanted.kind}")


def _write(result: CursorResult[Any], wanted: Wanted, path: Path, progress: Progress) -> int:
    """Stream a query's rows into a file, batch by batch, and say how many there were."""
    from spinney.connectors.tables import check_names  # loads pandas, which reading site.yaml does not need

    what = f"query for {wanted.kind}"
    names = [str(name).lower() for name in result.keys()]  # noqa: SIM118 (no mapping)
    check_names(names, what)
    rows = batches(result, what)
    return write_texts(path, _columns(wanted, names), rows, lambda count: progress(wanted.kind, count, None))


def _columns(wanted: Wanted, there: list[str]) -> dict[str, int]:
    """The columns to keep and where they are; fails if one is needed and missing, or if nobody knows it."""
    known = list(OTHER_COLUMNS.get(wanted.kind, EVENT_COLUMNS))
    needed = NEEDED.get(wanted.kind, ["patient", "time"])
    if wanted.kind == TABLE:  # it may have more columns than the study: they stay where they are
        known, needed = list(wanted.codes), ["patient", "index_time"]
    for column in needed:
        if column not in there:
            raise SourceFailed(f"query for {wanted.kind}: column {column} is missing{_close(column, there)}")
    unknown = [column for column in there if column not in {one.lower() for one in known}]
    if unknown and wanted.kind != TABLE:
        hint = _close(unknown[0], known)
        raise SourceFailed(f"query for {wanted.kind}: unknown column {unknown[0]}{hint}; known are {', '.join(known)}")
    return {column: there.index(column.lower()) for column in known if column.lower() in there}


def _close(column: str, others: Sequence[str]) -> str:
    close = get_close_matches(column, others, n=1)
    return f"; did you mean {close[0]}?" if close else ""


SOURCE = SqlSettings
