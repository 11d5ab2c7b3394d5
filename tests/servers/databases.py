"""Fixtures: a real PostgreSQL, SQLite files, and the public Synthea patients where they are at hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, text

from spinney.demo.postgres import postgres_server
from tests.places import ROOT


@pytest.fixture(scope="session", name="postgres_server")
def running_postgres() -> Iterator[URL]:
    """The server of the made-up world."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres(postgres_server: URL) -> Iterator[Callable[..., str]]:
    """Makes a fresh database from some statements and says its address."""
    made: list[str] = []
    numbers = count()

    def database(*statements: str) -> str:
        name = f"test_{os.getpid()}_{next(numbers)}"
        engine = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        made.append(name)
        url = postgres_server.set(database=name)
        run(url, *statements)
        return url.render_as_string()

    yield database
    engine = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for name in made:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def sqlite(tmp_path: Path) -> Callable[..., str]:
    """Makes a database file from some statements and says its address."""

    def database(*statements: str) -> str:
        url = URL.create("sqlite", database=str(tmp_path / "his.sqlite"))
        run(url, *statements)
        return url.render_as_string()

    return database


@pytest.fixture
def duckdb(tmp_path: Path) -> Callable[..., str]:
    """Makes a DuckDB file from some statements and says its address."""

    def database(*statements: str) -> str:
        url = URL.create("duckdb", database=str(tmp_path / "his.duckdb"))
        run(url, *statements)
        return url.render_as_string()

    return database


def run(url: URL, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(scope="session")
def synthea() -> Path:
    """The folder with the NDJSON of 100 Synthea patients."""
    folder = Path(os.environ.get("SPINNEY_DATA", ROOT / ".." / "shared" / "data")).resolve() / "fhir"
    if not (folder / "Observation.ndjson.gz").exists():
        pytest.skip("needs the Synthea patients; say where they are in SPINNEY_DATA")
    return folder
