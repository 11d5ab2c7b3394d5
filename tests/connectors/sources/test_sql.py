"""The SQL source on a real PostgreSQL, on SQLite and on DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from spinney.connectors import database as database_reader
from spinney.connectors.sources import EVENT_COLUMNS, PATIENT_COLUMNS, TABLE, Wanted
from spinney.connectors.sources.sql import Sql, SqlSettings
from spinney.errors import SourceFailed
from spinney.flows.cli import main
from tests.places import ROOT

WANTED = Wanted("Observation", (), datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC))
LABS = "CREATE TABLE labs (patient TEXT, taken {type}, code TEXT, amount {number}, unit TEXT)"
ROWS = (
    "INSERT INTO labs VALUES ('ann', '2022-12-31 10:00:00', 'x|1', 1.5, 'kg'), "
    "('ann', '2023-05-05 10:00:00', 'x|1', 2.5, 'kg')"
)
QUERY = (
    'SELECT patient, taken AS time, code, amount AS "value", unit FROM labs WHERE taken >= :since AND taken < :until'
)

Database = Callable[..., str]


@pytest.fixture(params=["postgres", "sqlite", "duckdb"])
def database(request: pytest.FixtureRequest) -> Database:
    make: Database = request.getfixturevalue(request.param)
    words = {"type": "TEXT" if request.param == "sqlite" else "TIMESTAMP"}
    words["number"] = "DOUBLE" if request.param == "duckdb" else "NUMERIC"
    return lambda *statements: make(*(statement.format(**words) for statement in statements))


def pull(
    url: str, folder: Path, wanted: Wanted = WANTED, timezone: str = "UTC", **settings: Any
) -> list[dict[str, Any]]:
    if not settings.keys() & {"events", "table"}:
        settings["events"] = {"Observation": QUERY}
    pulled = Sql(SqlSettings(url=url, **settings), timezone).pull([wanted], folder, lambda *_: None)
    path = pulled.table or pulled.files[wanted.kind][0]
    return pq.read_table(path).to_pylist()


def test_since_and_until_are_bound_and_rows_come_as_text(database: Database, tmp_path: Path) -> None:
    rows = pull(database(LABS, ROWS), tmp_path)
    assert len(rows) == 1
    assert rows[0] | {"time": None} == {"patient": "ann", "time": None, "code": "x|1", "value": "2.5", "unit": "kg"}
    assert rows[0]["time"].replace(" ", "T") == "2023-05-05T10:00:00"


def test_many_rows_come_in_batches_and_tell_how_far_they_are(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_reader, "BATCH", 10)
    url = database(LABS, *["INSERT INTO labs VALUES ('a', '2023-05-05 10:00:00', 'x|1', 1, 'kg')"] * 25)
    seen: list[int] = []
    source = Sql(SqlSettings(url=url, events={"Observation": QUERY}))
    pulled = source.pull([WANTED], tmp_path, lambda _kind, read, _total: seen.append(read))
    assert pulled.read == {"Observation": 25}
    assert seen == [10, 20, 25]


def test_a_query_that_writes_is_refused(database: Database, tmp_path: Path) -> None:
    url = database(LABS, ROWS)
    with pytest.raises(SourceFailed, match="mend the query"):
        pull(url, tmp_path, events={"Observation": "DELETE FROM labs RETURNING patient, taken AS time"})
    assert len(pull(url, tmp_path)) == 1


def test_a_query_that_writes_in_hiding_is_refused(postgres: Database, tmp_path: Path) -> None:
    sneaky = "SELECT nextval('s')::text AS patient, now() AS time"
    with pytest.raises(SourceFailed, match="it writes, but may only read"):
        pull(postgres("CREATE SEQUENCE s"), tmp_path, events={"Observation": sneaky})


def test_a_query_that_takes_too_long_is_stopped(postgres: Database, tmp_path: Path) -> None:
    slow = "SELECT 'ann' AS patient, now() AS time FROM (SELECT pg_sleep(20)) s"
    with pytest.raises(SourceFailed, match="took longer than timeout_minutes"):
        pull(postgres(), tmp_path, events={"Observation": slow}, timeout_minutes=0.005)


def test_all_queries_of_a_pull_see_the_same_state(postgres: Database, tmp_path: Path) -> None:
    isolation = "SELECT current_setting('transaction_isolation') AS patient, now() AS time"
    assert pull(postgres(), tmp_path, events={"Observation": isolation})[0]["patient"] == "repeatable read"


def test_postgres_rows_stream_through_a_cursor_of_the_server(postgres: Database, tmp_path: Path) -> None:
    cursors = "SELECT name AS patient, creation_time AS time FROM pg_cursors"
    assert len(pull(postgres(), tmp_path, events={"Observation": cursors})) == 1


def test_local_times_are_read_in_the_time_zone_of_the_site(postgres: Database, tmp_path: Path) -> None:
    zoned = "SELECT 'ann' AS patient, TIMESTAMPTZ '2023-07-01 12:00:00+00' AS time"
    rows = pull(postgres(), tmp_path, timezone="Europe/Berlin", events={"Observation": zoned})
    assert rows[0]["time"] == "2023-07-01T14:00:00+02:00"


def test_a_finished_table_keeps_only_the_columns_that_were_asked_for(database: Database, tmp_path: Path) -> None:
    table = "SELECT patient, taken AS index_time, amount AS Weight, 1 AS outcome, 'secret' AS surname FROM labs"
    wanted = Wanted(TABLE, ("patient", "index_time", "Weight", "height", "outcome"))
    rows = pull(database(LABS, ROWS), tmp_path, wanted, table=table)
    assert list(rows[0]) == ["patient", "index_time", "Weight", "outcome"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT * FROM lab", "lab"),
        ("SELECT nosuch FROM labs", "nosuch"),
        ("SELEC 1", "SELEC"),
        ("SELECT patient AS pat, taken AS time FROM labs", "column patient is missing; did you mean pat"),
        ("SELECT patient, taken FROM labs", "column time is missing"),
        ("SELECT patient, taken AS time, unit AS units FROM labs", "unknown column units; did you mean unit?"),
        (
            "SELECT patient, taken AS time FROM labs WHERE taken > :from",
            "unknown parameter :from; known are :since and :until",
        ),
    ],
)
def test_a_wrong_query_is_one_line_that_names_what_is_wrong(
    database: Database, tmp_path: Path, query: str, says: str
) -> None:
    with pytest.raises(SourceFailed, match="query for Observation: ") as failed:
        pull(database(LABS, ROWS), tmp_path, events={"Observation": query})
    assert says in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_value_that_the_database_stumbles_over_is_not_in_the_message(postgres: Database, tmp_path: Path) -> None:
    url = postgres("CREATE TABLE t (v TEXT)", "INSERT INTO t VALUES ('CANARY-Meier')")
    with pytest.raises(SourceFailed, match="SQLSTATE 22P02") as failed:
        pull(url, tmp_path, events={"Observation": "SELECT v AS patient, now() AS time, v::int AS value FROM t"})
    assert "CANARY" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_a_value_that_duckdb_stumbles_over_is_not_in_the_message(duckdb: Database, tmp_path: Path) -> None:
    url = duckdb("CREATE TABLE t (v TEXT)", "INSERT INTO t VALUES ('CANARY-Meier')")
    with pytest.raises(SourceFailed, match="the database gave up with ConversionException") as failed:
        pull(url, tmp_path, events={"Observation": "SELECT v AS patient, now() AS time, v::int AS value FROM t"})
    assert "CANARY" not in str(failed.value)


def test_every_column_that_a_query_may_yield_is_told_where_people_look() -> None:
    page = (ROOT / "docs/tutorial-cohort.md").read_text(encoding="utf-8")
    places = [
        page.partition("### Data in SQL")[2].partition("### ")[0],
        CliRunner().invoke(main, ["site", "init", "--help"]).output,
        SqlSettings.starter({"url": "sqlite:///his.db"}),
        "".join(str(field.description) for field in SqlSettings.model_fields.values()),
    ]
    for place in places:  # the key under which a query stands says its kind
        assert {*EVENT_COLUMNS, *PATIENT_COLUMNS} - {*re.findall(r"[a-z]+", place)} <= {"kind"}


def test_a_kind_without_a_query_is_noted(database: Database, tmp_path: Path) -> None:
    source = Sql(SqlSettings(url=database(LABS, ROWS), events={"Observation": QUERY}))
    pulled = source.pull([WANTED, Wanted("Condition")], tmp_path, lambda *_: None)
    assert pulled.notes == ("Condition: no query for it in site.yaml",)
