"""A made-up history in the tables of an ordinary hospital system, and what the queries read out of them."""

from __future__ import annotations

import pandas as pd
import pytest
from sqlalchemy import create_engine, text

from spinney.connectors.sources import EVENT_COLUMNS, PATIENT_COLUMNS
from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.sql import PATIENTS, QUERIES, TABLES, write_sql

EVER = {"since": "1900-01-01", "until": "2999-01-01"}


@pytest.fixture(scope="module")
def beech() -> MadeUpHistory:
    """The hospital that writes in its own way."""
    return make_history(make_hospitals(4, 300, 5)[2], 5)


@pytest.fixture(scope="module")
def url(beech: MadeUpHistory, tmp_path_factory: pytest.TempPathFactory) -> str:
    address = f"sqlite:///{tmp_path_factory.mktemp('his')}/his.sqlite"
    write_sql(beech, address)
    return address


def rows(url: str, query: str, **bounds: str) -> pd.DataFrame:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(query), bounds).mappings().all()
    engine.dispose()
    return pd.DataFrame([dict(one) for one in found])


def test_queries_give_columns_that_the_source_knows(url: str):
    assert set(rows(url, PATIENTS)) <= set(PATIENT_COLUMNS)
    for query in QUERIES.values():
        asked = EVER if ":since" in query else {}
        assert {"patient", "time"} <= set(rows(url, query, **asked)) <= set(EVENT_COLUMNS)


def test_every_event_of_the_history_is_a_row(url: str, beech: MadeUpHistory):
    assert len(rows(url, PATIENTS)) == len(beech.patients)
    for kind, query in QUERIES.items():
        asked = EVER if ":since" in query else {}
        assert len(rows(url, query, **asked)) == len(beech.events[kind])


def test_times_are_the_hospital_s_own_without_a_zone(url: str, beech: MadeUpHistory):
    local = beech.events["Encounter"]["time"].dt.tz_localize("UTC").dt.tz_convert(beech.hospital.timezone)
    written = rows(url, "SELECT admitted FROM stay")["admitted"]
    assert sorted(written) == sorted(local.dt.strftime("%Y-%m-%d %H:%M:%S"))
    assert local.dt.tz_localize(None).min() != beech.events["Encounter"]["time"].min()


def test_a_query_is_bound_in_time(url: str):
    all_of_it = rows(url, QUERIES["Observation"], **EVER)["time"]
    middle = sorted(all_of_it)[len(all_of_it) // 2]
    later = rows(url, QUERIES["Observation"], since=middle, until=EVER["until"])["time"]
    assert 0 < len(later) < len(all_of_it)
    assert min(later) >= middle


def test_written_again_nothing_is_there_twice(beech: MadeUpHistory, url: str):
    before = {table: len(rows(url, f"SELECT pid FROM {table}")) for table in TABLES}
    write_sql(beech, url)
    assert {table: len(rows(url, f"SELECT pid FROM {table}")) for table in TABLES} == before
