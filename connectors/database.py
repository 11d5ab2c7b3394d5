"""Any database that SQLAlchemy speaks to, read with care: only read, rows streamed, errors without values.

All queries of a connection see the same state, where the database can do that, and what fails is told in one line
that a person can act on.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import URL, Connection, CursorResult, Executable, create_engine, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    InternalError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from spinney.errors import SourceFailed

BATCH = 20_000
CONNECT_SECONDS = 30
OF_DRIVERS = frozenset({1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 20002, 20003, 20006, 20009})
"""MySQL's and SQL Server's numbers for too many guests, a shutdown, locks, deadlocks, and lines that broke."""
FOR_GOOD = (
    "authentication",
    "does not exist",
    "denied",
    "pg_hba.conf",
    "login failed",
    "unknown database",
    "invalid user",
)
"""Words of a refusal that no waiting ends; drivers have no code for most of them while they connect."""
HEALING = ("08", "40", "53", "55P03", "57P")  # SQLSTATE: connection, rollback, resources, lock, the server's own doing
MEND_QUERY = "mend the query in site.yaml"
IN_A_FILE = ("sqlite", "duckdb")
EXTRAS = {
    "postgresql": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "oracle": "oracle",
    "mssql": "sqlserver",
    "duckdb": "duckdb",
}
CONNECT: dict[str, dict[str, Any]] = {
    "psycopg": {"connect_timeout": CONNECT_SECONDS},
    "psycopg2": {"connect_timeout": CONNECT_SECONDS},
    "pymysql": {"connect_timeout": CONNECT_SECONDS},
    "oracledb": {"tcp_connect_timeout": CONNECT_SECONDS},
    "pymssql": {"login_timeout": CONNECT_SECONDS},
    "duckdb_engine": {"read_only": True},
}
OF_GRAMMAR = ("BinderException", "CatalogException", "ParserException")  # DuckDB's: about names, never about values


class SourceBusy(SourceFailed):
    """The database is there and says to come again."""

    transient = True


def address_below(folder: Path, address: str) -> str:
    """The address with the file of SQLite or DuckDB, where it is relative, below the folder."""
    url = make_url(address)
    if url.get_backend_name() not in IN_A_FILE or not url.database:
        return address
    return str(url.set(database=str(folder / url.database)))


def checked_address(url: str) -> str:
    """The address, if it is one and holds no password."""
    try:
        parts = make_url(url)
    except ArgumentError:
        raise ValueError("url must look like postgresql+psycopg://user@host/database") from None
    if parts.password is not None or any("password" in key.lower() for key in parts.query):
        raise ValueError("url must hold no password; name its environment variable in password_env")
    return url


@dataclass(frozen=True)
class Database:
    """Where a database is, and how long one of its queries may take."""

    address: str
    password_env: str | None = None
    timeout_minutes: float = 60
    timezone: str = "UTC"
    """Of the session, where the database has one."""

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
            extra = EXTRAS.get(url.get_backend_name())
            how = f": pip install 'spinney[{extra}]'" if extra else ""
            raise SourceFailed(f"{url.drivername} needs the Python package {error.name}; install it{how}") from None
        except ImportError as error:  # the package is there, and a library of the system is not
            raise SourceFailed(f"{url.drivername} can't be loaded: {error}; install what it needs") from None
        try:
            with _reached(engine, url) as connection:
                try:
                    _make_careful(connection, self.timeout_minutes, self.timezone)
                except SQLAlchemyError as error:
                    raise failed("the database", error) from None
                yield connection
                connection.rollback()
        finally:
            engine.dispose()

    def _url(self) -> URL:
        url = make_url(self.address)
        if url.get_backend_name() in IN_A_FILE and url.database and not Path(url.database).exists():
            raise SourceFailed(f"{url.database} is not there; mend url in site.yaml")  # an empty one would be made
        variable = self.password_env
        if variable is None:
            return url
        if variable not in os.environ:
            raise SourceFailed(f"the environment variable {variable} (password_env) is not set; set it and try again")
        return url.set(password=os.environ[variable])


def run_statement(
    connection: Connection, statement: Executable, bound: Mapping[str, Any], what: str, mend: str = MEND_QUERY
) -> CursorResult[Any]:
    """Start a query whose rows stay at the server until they are read."""
    options = {"stream_results": True, "yield_per": BATCH, "max_row_buffer": BATCH}
    try:
        return connection.execution_options(**options).execute(statement, bound)
    except SQLAlchemyError as error:
        raise failed(what, error, mend) from None


def batches(result: CursorResult[Any], what: str) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows of a query, some at a time."""
    try:
        yield from result.partitions(BATCH)
    except SQLAlchemyError as error:
        raise failed(what, error) from None


def write_texts(
    path: Path, columns: Mapping[str, int], rows: Iterable[Sequence[Sequence[Any]]], tell: Callable[[int], None]
) -> int:
    """Write batches of rows as text, each column from its place in a row; say how many there were."""
    count = 0
    with pq.ParquetWriter(path, pa.schema([(column, pa.string()) for column in columns])) as writer:
        for batch in rows:
            texts = ([as_text(row[place]) for row in batch] for place in columns.values())
            writer.write_batch(pa.record_batch([pa.array(text, pa.string()) for text in texts], names=list(columns)))
            count += len(batch)
            tell(count)
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
        kind = SourceFailed if _for_good(error) else SourceBusy
        raise kind(f"the database {where} can't be reached: {said}; check url and password_env") from None
    with connection:
        yield connection


def _for_good(error: SQLAlchemyError) -> bool:
    """Whether a database refuses whom it refuses; one that is away, starts or has too many guests does not."""
    if not isinstance(error, OperationalError | InterfaceError | InternalError):
        return True
    state, words = str(getattr(error.orig, "sqlstate", "") or ""), str(error.orig).lower()
    return state.startswith(("28", "3D")) or any(word in words for word in FOR_GOOD)


def _connect_arguments(url: URL) -> dict[str, Any]:
    return CONNECT.get(url.get_driver_name(), {})


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


def bound_moment(moment: datetime, dialect: str) -> datetime | str:
    if dialect == "sqlite":
        return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return moment.astimezone(UTC).replace(tzinfo=None) if dialect == "duckdb" else moment


def as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return str(int(value))  # -0.0 is 0, and a label of 1.0 is 1
    return value.isoformat() if isinstance(value, (datetime, date)) else str(value)


def failed(what: str, error: SQLAlchemyError, mend: str = MEND_QUERY) -> SourceFailed:
    """What a database says about names and grammar is passed on; anything else may quote a patient's data."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = str(getattr(cause, "sqlstate", "") or "")
    said = str(cause).strip().splitlines()[0] if cause is not None else ""
    if state == "57014":
        return SourceFailed(f"{what}: took longer than timeout_minutes; make it faster or raise the limit")
    sqlite = getattr(cause, "sqlite_errorcode", None)
    kind = type(cause).__name__
    if state.startswith("42") or sqlite == sqlite3.SQLITE_ERROR or kind in OF_GRAMMAR:
        return SourceFailed(f"{what}: {said}; {mend}")
    read_only = kind == "InvalidInputException" and said.endswith("read-only mode!")
    if state == "25006" or sqlite == sqlite3.SQLITE_READONLY or read_only:
        return SourceFailed(f"{what}: it writes, but may only read; {mend}")
    if state.startswith(HEALING) or sqlite in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or _broke(error):
        why = _code(cause, state) or (" (locked)" if sqlite else " (the connection broke)")
        return SourceBusy(f"{what}: the database is busy or away{why}; it is asked again in a while")
    return SourceFailed(f"{what}: the database gave up with {kind}{_code(cause, state)}; try it in a console")


def _broke(error: SQLAlchemyError) -> bool:
    """Whether the line is gone, or another guest in the way: dialects know the first, drivers have numbers for both."""
    if not isinstance(error, DBAPIError):
        return False
    first = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return error.connection_invalidated or (isinstance(first, int) and first in OF_DRIVERS)


def _code(cause: BaseException | None, state: str) -> str:
    """What a database calls its error: a number or a short word of its own, without the words that follow."""
    if state:
        return f" (SQLSTATE {state})"
    first = cause.args[0] if cause is not None and cause.args else None
    number = first if isinstance(first, int) else getattr(first, "full_code", None)
    return f" (error {number})" if number else ""
