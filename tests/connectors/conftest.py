"""A real PostgreSQL for the tests of this folder, and the public Synthea patients where they are at hand."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, text

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A server on a socket of its own; its folder is short and open to the user that PostgreSQL runs as."""
    folder = tempfile.mkdtemp(prefix="spinney-pg-")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = folder  # pgserver asks for it when it is imported
    try:
        import pgserver
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
    host = server.get_uri().rpartition("host=")[2]
    yield URL.create("postgresql+psycopg", username="postgres", database="postgres", query={"host": host})
    server.cleanup()
    atexit.unregister(server._cleanup)  # or it would run once more, and leave a lock file where the folder was
    shutil.rmtree(folder)


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
