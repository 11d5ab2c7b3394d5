"""Scores in a table of the hospital's: one row per study, patient and index time, replaced by every later run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    DateTime,
    Double,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    create_engine,
    make_url,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from spinney.errors import SourceFailed
from spinney.scoring.scores import Score, ScoredBy, in_batches
from spinney.scoring.settings import ScoresTable

BATCH = 1000
KEY = ("study", "patient", "index_time")
ADVICE = "has it other columns, or has the user no right to create and write it?"


class ScoresFailed(SourceFailed):
    """The table could not be written. A database's own words may quote a patient, so they are not passed on."""

    def __init__(self, message: str, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def write_table(settings: ScoresTable, scores: Iterable[Score], study: str, source: ScoredBy, now: datetime) -> int:
    """Write scores in one transaction, all or none; says how many. A second run changes no number of rows."""
    with _connected(settings) as connection:
        table = _table(settings)
        table.create(connection, checkfirst=True)
        count = 0
        for some in in_batches(scores, BATCH):
            upsert(connection, table, [_row(one, study, source, now) for one in some])
            count += len(some)
        return count


def upsert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, or replace those with the same key, in the dialect's own way or by update and insert."""
    dialects: Mapping[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
    insert = dialects.get(connection.dialect.name)
    if insert is None:
        replace(connection, table, rows)
        return
    statement = insert(table)
    others = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in KEY}
    connection.execute(statement.on_conflict_do_update(index_elements=KEY, set_=others), rows)


def replace(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert or change scores in a database without an upsert that SQLAlchemy knows."""
    same = [table.c[name] == bindparam(f"key_{name}") for name in KEY]
    connection.execute(table.delete().where(*same), [{f"key_{name}": row[name] for name in KEY} for row in rows])
    connection.execute(table.insert(), rows)


def _table(settings: ScoresTable) -> Table:
    return Table(
        settings.table,
        MetaData(schema=settings.schema_name),
        Column("study", String(128), primary_key=True),
        Column("patient", String(256), primary_key=True),
        Column("index_time", DateTime(timezone=True), primary_key=True),
        Column("probability", Double, nullable=False),
        Column("decision", Boolean, nullable=False),
        Column("model", String(256), nullable=False),
        Column("version", Integer, nullable=False),
        Column("model_digest", String(64), nullable=False),
        Column("scored_at", DateTime(timezone=True), nullable=False),
    )


def _row(score: Score, study: str, source: ScoredBy, now: datetime) -> dict[str, Any]:
    return {
        "study": study,
        "patient": score.patient,
        "index_time": score.index_time,
        "probability": score.probability,
        "decision": score.decision,
        "model": source.model,
        "version": source.version,
        "model_digest": source.digest,
        "scored_at": now,
    }


@contextmanager
def _connected(settings: ScoresTable) -> Iterator[Connection]:
    """A transaction; every error becomes one line that names no patient."""
    url = make_url(settings.url)
    variable = settings.password_env
    if variable is not None:
        if variable not in os.environ:
            raise ScoresFailed(f"the environment variable {variable} (scores.table.password_env) is not set; set it")
        url = url.set(password=os.environ[variable])
    where = f"{url.host}/{url.database}" if url.host else f"{url.database}"
    try:
        engine = create_engine(url)
    except (NoSuchModuleError, ModuleNotFoundError):
        raise ScoresFailed(f"{url.drivername} is not installed here; mend scores.table.url, or install it") from None
    try:
        with _reached(engine, where) as connection, connection.begin():
            yield connection
    except SQLAlchemyError as error:
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        words = f"{settings.table} in {where} can't be written{_state(error)}; {ADVICE}"
        raise ScoresFailed(words, transient=lost) from None
    finally:
        engine.dispose()


def _reached(engine: Engine, where: str) -> Connection:
    try:
        return engine.connect()
    except SQLAlchemyError:
        advice = "check scores.table.url, the network and that the database runs"
        raise ScoresFailed(f"the database {where} can't be reached; {advice}", transient=True) from None


def _state(error: SQLAlchemyError) -> str:
    code = getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None
    return f" (SQLSTATE {code})" if code else ""
