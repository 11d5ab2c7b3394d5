"""A list in a database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.opt_out.identifiers import Named
from spinney.connectors.opt_out.lists import Place
from spinney.connectors.opt_out.sql_list import SqlList
from spinney.connectors.sources.sql import SqlSettings
from spinney.errors import SourceFailed


@pytest.fixture
def address(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "his.db")) as database:
        database.execute("CREATE TABLE objection (person INTEGER, since TEXT)")
        database.executemany("INSERT INTO objection VALUES (?, ?)", [(7, "2020"), (8, "2021"), (8, "2022")])
        database.execute("CREATE TABLE broken (person TEXT)")
        database.executemany("INSERT INTO broken VALUES (?)", [("7",), (None,)])
        database.commit()
    return f"sqlite:///{tmp_path / 'his.db'}"


def read(folder: Path, query: str, **how: Any) -> frozenset[Named]:
    return SqlList(query=query, **how).read(Place(folder, datetime.now(UTC))).objects


def test_a_query_yields_identifiers_as_text(tmp_path: Path, address: str) -> None:
    found = read(tmp_path, "SELECT person AS patient FROM objection", url=address)
    assert found == {Named("", "exact", "7"), Named("", "exact", "8")}
    assert not [*tmp_path.glob("*.parquet")]


def test_without_an_address_it_is_the_sources_own(tmp_path: Path, address: str) -> None:
    own = SqlList(query="SELECT person AS patient FROM objection")
    beside = own.beside(SqlSettings(url=address, password_env="HIS", table="SELECT 1"))  # type: ignore[call-arg]
    assert (beside.url, beside.password_env) == (address, "HIS")  # type: ignore[attr-defined]
    with pytest.raises(SourceFailed, match="needs `url`, since the source itself is no database"):
        own.read(Place(tmp_path, datetime.now(UTC)))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT person FROM objection", "query of opt_out: query for Patient: column patient is missing"),
        ("SELECT person AS patient FROM nowhere", "no such table: nowhere"),
        ("SELECT person AS patient FROM broken", "one of its rows is no identifier"),
        ("DELETE FROM objection", "it writes, but may only read"),
    ],
)
def test_a_query_that_yields_no_list_stops_the_pull(tmp_path: Path, address: str, query: str, words: str) -> None:
    with pytest.raises(SourceFailed, match=words):
        read(tmp_path, query, url=address)


def test_a_database_that_is_away_stops_the_pull(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="is not there"):
        read(tmp_path, "SELECT 1 AS patient", url=f"sqlite:///{tmp_path / 'nowhere.db'}")
