"""Servers that tests of several folders share; nothing starts before a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from spinney.storage.files import installation_folder
from tests.servers.prefect_server import PrefectServer, migrated_database, used_here

pytest_plugins = ["tests.servers.databases", "tests.slowness"]

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # tests open exported models themselves
settings.register_profile("curious", deadline=None)  # a busy machine is no failure
settings.register_profile(
    "steady", derandomize=True, deadline=None
)  # the same cases: a merge is no place for a surprise
settings.load_profile("steady" if os.environ.get("CI") else "curious")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What may take longest begins first: side by side, nobody then waits for a last long file."""
    items.sort(key=_patience, reverse=True)  # stable: tests of a file stay in their order


def _patience(item: pytest.Item) -> float:
    marks = [mark.args[0] for mark in item.parent.iter_markers("timeout")] if item.parent else []
    return float(max(marks, default=0))


@pytest.fixture(scope="session")
def prefect_database(request: pytest.FixtureRequest) -> Path:
    """A database that a Prefect server can start on at once: `with PrefectServer(folder, prefect_database)`."""
    return migrated_database(installation_folder() or request.config.cache.mkdir("prefect-database"))


@pytest.fixture(scope="session")
def prefect_server(prefect_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """One real server for the whole session; this process and those that inherit its environment use it."""
    with PrefectServer(tmp_path_factory.mktemp("prefect"), prefect_database) as server, used_here(server):
        yield server
