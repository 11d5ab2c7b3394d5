"""Databases that can't be reached, or whose address is wrong; what is read from one is shown by the SQL source."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path

import pymssql
import pymysql
import pytest
from sqlalchemy import URL, text
from sqlalchemy.exc import DBAPIError

from spinney.connectors.database import (
    Database,
    address_below,
    as_text,
    bound_moment,
    checked_address,
    failed,
)
from spinney.errors import SourceFailed


def reach(url: str, password_env: str | None = None) -> str:
    with Database(url, password_env).connected() as connection:
        return str(connection.execute(text("SELECT 1")).scalar())


def test_an_unreachable_database_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIS_PASSWORD", "s3cret")
    with pytest.raises(SourceFailed, match=r"127\.0\.0\.1:1/his can't be reached: .*refused") as caught:
        reach("postgresql+psycopg://reader@127.0.0.1:1/his", password_env="HIS_PASSWORD")
    assert caught.value.transient, "it may be back in a while"
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_database_is_named(postgres_server: URL) -> None:
    assert reach(postgres_server.render_as_string()) == "1"
    with pytest.raises(SourceFailed, match='database "nosuch" does not exist') as caught:
        reach(postgres_server.set(database="nosuch").render_as_string())
    assert not caught.value.transient


def test_a_connection_that_the_server_ends_is_made_again(postgres_server: URL) -> None:
    database = Database(postgres_server.render_as_string())
    with database.connected() as connection, database.connected() as other:
        one = connection.execute(text("SELECT pg_backend_pid()")).scalar()
        other.execute(text("SELECT pg_terminate_backend(:one)"), {"one": one})
        with pytest.raises(DBAPIError) as caught:
            connection.execute(text("SELECT 1"))
    told = failed("query for Observation", caught.value)
    assert (str(told).partition(";")[0], told.transient) == (
        "query for Observation: the database is busy or away (SQLSTATE 57P01)",
        True,
    )


def test_a_file_that_somebody_writes_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "his.db"
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("CREATE TABLE visits (patient TEXT)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SourceFailed, match="busy or away") as caught:
            reach(f"sqlite:///{path}?timeout=0.1")
        other.execute("ROLLBACK")
    other.close()
    assert caught.value.transient


@pytest.mark.parametrize(
    "cause",
    [
        pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query"),
        pymysql.err.OperationalError(1213, "Deadlock found when trying to get lock"),
        pymssql.OperationalError(1205, b"Transaction was deadlocked"),
    ],
)
def test_what_a_driver_calls_a_lock_or_a_broken_line_heals(cause: Exception) -> None:
    assert failed("query for Observation", DBAPIError("SELECT", {}, cause)).transient


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_missing_file_is_not_made(tmp_path: Path, dialect: str) -> None:
    with pytest.raises(SourceFailed, match=r"his\.db is not there"):
        reach(f"{dialect}:///{tmp_path / 'his.db'}")
    assert not (tmp_path / "his.db").exists()


def test_a_password_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIS_PASSWORD", raising=False)
    with pytest.raises(SourceFailed, match="HIS_PASSWORD"):
        reach("postgresql+psycopg://reader@127.0.0.1:1/his", password_env="HIS_PASSWORD")


def test_a_dialect_that_is_not_installed_is_named() -> None:
    with pytest.raises(SourceFailed, match="cobol is no dialect"):
        reach("cobol://mainframe/his")
    with pytest.raises(SourceFailed, match=r"needs the Python package MySQLdb; install it: .*'spinney\[mysql\]'"):
        reach("mysql+mysqldb://reader@db/his")


@pytest.mark.parametrize(
    "address", ["mysql+pymysql", "mariadb+pymysql", "oracle+oracledb", "mssql+pymssql", "postgresql+psycopg"]
)
def test_the_driver_of_every_extra_is_there_and_a_closed_port_is_one_line(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIS_PASSWORD", "s3cret")
    with pytest.raises(SourceFailed, match=r"the database 127\.0\.0\.1:1/his can't be reached: ") as caught:
        reach(f"{address}://reader@127.0.0.1:1/his", password_env="HIS_PASSWORD")
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (pymysql.err.ProgrammingError(1146, "Table 'CANARY' doesn't exist"), " (error 1146)"),
        (pymssql.ProgrammingError(208, b"Invalid object name 'CANARY'."), " (error 208)"),
        (ValueError("CANARY"), ""),
    ],
)
def test_of_an_error_that_may_quote_a_value_only_the_number_is_told(cause: Exception, code: str) -> None:
    told = str(failed("query for Observation", DBAPIError("SELECT", {}, cause)))
    assert told.endswith(f"the database gave up with {type(cause).__name__}{code}; try it in a console")


@pytest.mark.parametrize("url", ["postgresql://reader:pass@db/his", "postgresql://reader@db/his?password=x", "his"])
def test_an_address_with_a_password_or_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url must"):
        checked_address(url)


def test_only_a_relative_file_is_put_below_the_folder() -> None:
    assert address_below(Path("/site"), "sqlite:///his.db") == "sqlite:////site/his.db"
    assert address_below(Path("/site"), "duckdb:///his.db") == "duckdb:////site/his.db"
    assert address_below(Path("/site"), "postgresql://reader@db/his") == "postgresql://reader@db/his"


def test_a_day_is_written_without_a_time_and_a_whole_number_without_a_point() -> None:
    assert as_text(date(2023, 5, 1)) == "2023-05-01"
    assert as_text(datetime(2023, 5, 1, 7)) == "2023-05-01T07:00:00"
    assert [as_text(value) for value in (None, 1.0, True, 1.5, "x")] == [None, "1", "1", "1.5", "x"]


def test_a_moment_is_bound_as_each_database_compares_it() -> None:
    noon = datetime(2023, 5, 1, 12, tzinfo=UTC)
    assert bound_moment(noon, "sqlite") == "2023-05-01 12:00:00"
    assert bound_moment(noon, "postgresql") is noon
    assert bound_moment(noon, "duckdb") == datetime(2023, 5, 1, 12)
