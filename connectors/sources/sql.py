"""Any database that SQLAlchemy speaks to: queries of the site yield patients and events, or the finished table.

Rows are streamed through a server-side cursor into Parquet, in one read-only transaction, so that all queries see the
same state. Values are written as text and judged by the one parser that all sources share.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, field_validator, model_validator
from sqlalchemy import URL, Connection, CursorResult, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from spinney.connectors.sources import (
    EVENT_COLUMNS,
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

BATCH = 20_000
LONG_AGO = datetime(1850, 1, 1, tzinfo=UTC)
CONNECT_SECONDS = 30
HEALING = ("08", "40", "53", "55P03", "57P")  # SQLSTATE: connection, rollback, resources, lock, the server's own doing
PLAIN_COLUMNS = ("patient", "index_time")
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
  # have them until, recorded, value, text, unit, status, class.
  events:
    Encounter: |
      SELECT patient, code, time, until, status, class FROM encounters WHERE time BETWEEN :since AND :until
    Observation: |
      SELECT patient, code, time, recorded, value, unit FROM observations WHERE time BETWEEN :since AND :until
"""


class SourceBusy(SourceFailed):
    """The database is there and says to come again."""

    transient = True


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
        {}, description="By resource type, a query that yields patient, time, code, value ..."
    )
    table: str | None = Field(None, description="One query instead that yields the finished table.")
    timeout_minutes: float = Field(60, gt=0, description="Longest time for one query, where the database can tell.")

    @field_validator("url")
    @classmethod
    def _has_no_password(cls, value: str) -> str:
        try:
            url = make_url(value)
        except ArgumentError:
            raise ValueError("url must look like postgresql+psycopg://user@host/database") from None
        if url.password is not None or any("password" in key.lower() for key in url.query):
            raise ValueError("url must hold no password; name its environment variable in password_env")
        return value

    @model_validator(mode="after")
    def _events_or_table(self) -> Self:
        if bool(self.events) == (self.table is not None):
            raise ValueError("sql needs either events (with patients) or table")
        return self

    def open(self, where: Surroundings) -> Source:
        return Sql(self, where.timezone)

    def reach(self, where: Surroundings) -> str:
        with Sql(self, where.timezone).connected() as connection:
            return f"{connection.dialect.name} answers"

    @property
    def table_columns(self) -> tuple[str | None, str | None] | None:
        return PLAIN_COLUMNS if self.table else None

    def anchored(self, folder: Path) -> Self:
        return self.model_copy(update={"url": below(folder, self.url)})

    @classmethod
    def starter(cls, answers: Mapping[str, str]) -> str:
        variable = answers.get("secret_env")
        secret = f"  password_env: {as_yaml(variable)}" if variable else "  # password_env: HIS_PASSWORD"
        return STARTER.format(url=as_yaml(answers["url"]), secret=secret)


def below(folder: Path, address: str) -> str:
    """The address with SQLite's file, where it is relative, below the folder."""
    url = make_url(address)
    if url.get_backend_name() != "sqlite" or not url.database:
        return address
    return str(url.set(database=str(folder / url.database)))


class Sql:
    """Runs the site's queries."""

    def __init__(self, settings: SqlSettings, timezone: str = "UTC") -> None:
        self.settings, self._timezone = settings, timezone

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        files: dict[str, tuple[Path, ...]] = {}
        read: dict[str, int] = {}
        notes: list[str] = []
        with self.connected() as connection:
            for one in wanted:
                query = self._query(one.kind)
                if query is None:
                    notes.append(f"{one.kind}: no query for it in site.yaml")
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
        return {TABLE: self.settings.table, "Patient": self.settings.patients}.get(kind, of_events.get(kind))

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection that only reads."""
        url = self._url()
        try:
            engine = create_engine(url, connect_args=_connect_arguments(url))
        except NoSuchModuleError:
            raise SourceFailed(
                f"{url.drivername} is no dialect that is installed here; mend url, or install it"
            ) from None
        except ModuleNotFoundError as error:
            raise SourceFailed(f"{url.drivername} needs the Python package {error.name}; install it") from None
        try:
            with _reached(engine, url) as connection:
                try:
                    _make_careful(connection, self.settings.timeout_minutes, self._timezone)
                except SQLAlchemyError as error:
                    raise _failed("the database", error) from None
                yield connection
                connection.rollback()
        finally:
            engine.dispose()

    def _url(self) -> URL:
        url = make_url(self.settings.url)
        if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
            raise SourceFailed(f"{url.database} is not there; mend url in site.yaml")  # SQLite would make an empty one
        variable = self.settings.password_env
        if variable is None:
            return url
        if variable not in os.environ:
            raise SourceFailed(f"the environment variable {variable} (password_env) is not set; set it and try again")
        return url.set(password=os.environ[variable])

    def _run(self, connection: Connection, query: str, wanted: Wanted) -> CursorResult[Any]:
        statement = text(query)
        moments = {"since": wanted.since or LONG_AGO, "until": wanted.until or datetime.now(UTC)}
        asked = statement.compile().params.keys()
        if unknown := sorted(set(asked) - set(moments)):
            raise SourceFailed(f"query for {wanted.kind}: unknown parameter :{unknown[0]}; known are :since and :until")
        bound = {key: _bound(moments[key], connection.dialect.name) for key in asked}
        try:
            options = {"stream_results": True, "yield_per": BATCH, "max_row_buffer": BATCH}
            return connection.execution_options(**options).execute(statement, bound)
        except SQLAlchemyError as error:
            raise _failed(f"query for {wanted.kind}", error) from None


def _write(result: CursorResult[Any], wanted: Wanted, path: Path, progress: Progress) -> int:
    """Stream a query's rows into a file, batch by batch, and say how many there were."""
    from spinney.connectors.tables import check_names  # loads pandas, which reading site.yaml does not need

    count = 0
    try:
        names = [str(name).lower() for name in result.keys()]  # noqa: SIM118 (no mapping)
        check_names(names, f"query for {wanted.kind}")
        columns = _columns(wanted, names)
        with pq.ParquetWriter(path, pa.schema([(column, pa.string()) for column in columns])) as writer:
            for rows in result.partitions(BATCH):
                texts = ([_as_text(row[place]) for row in rows] for place in columns.values())
                writer.write_batch(
                    pa.record_batch([pa.array(text, pa.string()) for text in texts], names=list(columns))
                )
                count += len(rows)
                progress(wanted.kind, count, None)
    except SQLAlchemyError as error:
        raise _failed(f"query for {wanted.kind}", error) from None
    return count


@contextmanager
def _reached(engine: Any, url: URL) -> Iterator[Connection]:
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        where = f"{url.host}:{url.port or 'default port'}/{url.database}" if url.host else f"{url.database}"
        said = str(getattr(error, "orig", "") or type(error).__name__).strip().splitlines()[0]
        if url.password:
            said = said.replace(str(url.password), "***")
        raise SourceFailed(f"the database {where} can't be reached: {said}; check url and password_env") from None
    with connection:
        yield connection


def _connect_arguments(url: URL) -> dict[str, Any]:
    return {"connect_timeout": CONNECT_SECONDS} if url.get_backend_name() in ("postgresql", "mysql", "mariadb") else {}


def _make_careful(connection: Connection, minutes: float, timezone: str) -> None:
    """Read only, one state for all queries, and an end to each of them, where the database knows how."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        for name, value in (("statement_timeout", f"{int(minutes * 60_000)}ms"), ("TimeZone", timezone)):
            connection.execute(text("SELECT set_config(:name, :value, true)"), {"name": name, "value": value})
    elif dialect == "sqlite":
        connection.execute(text("PRAGMA query_only = ON"))
        connection.execute(text("PRAGMA schema_version"))  # the first that looks into the file
    elif dialect in ("mysql", "mariadb", "oracle"):
        connection.rollback()
        connection.execute(text("SET TRANSACTION READ ONLY"))


def _bound(moment: datetime, dialect: str) -> datetime | str:
    return moment if dialect != "sqlite" else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _columns(wanted: Wanted, there: list[str]) -> dict[str, int]:
    """The columns to keep and where they are; fails if one is needed and missing, or if nobody knows it."""
    known = list(PATIENT_COLUMNS if wanted.kind == "Patient" else EVENT_COLUMNS)
    needed = ["patient"] if wanted.kind == "Patient" else ["patient", "time"]
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


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return str(int(value))  # -0.0 is 0, and a label of 1.0 is 1
    return value.isoformat() if isinstance(value, (datetime, date)) else str(value)


def _failed(what: str, error: SQLAlchemyError) -> SourceFailed:
    """What a database says about names and grammar is passed on; anything else may quote a patient's data."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = str(getattr(cause, "sqlstate", "") or "")
    said = str(cause).strip().splitlines()[0] if cause is not None else ""
    if state == "57014":
        return SourceFailed(f"{what}: took longer than timeout_minutes; make it faster or raise the limit")
    sqlite = getattr(cause, "sqlite_errorcode", None)
    if state.startswith("42") or sqlite == sqlite3.SQLITE_ERROR:
        return SourceFailed(f"{what}: {said}; mend the query in site.yaml")
    if state == "25006" or sqlite == sqlite3.SQLITE_READONLY:
        return SourceFailed(f"{what}: it writes, but may only read; mend the query in site.yaml")
    if state.startswith(HEALING) or sqlite in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return SourceBusy(f"{what}: the database is busy or away ({state or 'locked'}); it is asked again in a while")
    code = f" (SQLSTATE {state})" if state else ""
    return SourceFailed(f"{what}: the database gave up with {type(cause).__name__}{code}; try it in a console")


SOURCE = SqlSettings
