"""A Prefect server of the tests' own, with its database and results in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.prefect_server import PrefectServer, used_here


@pytest.fixture(scope="session")
def prefect(prefect_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Starts once for this folder's tests, and nobody else uses it; says where everything is that Prefect keeps."""
    with PrefectServer(tmp_path_factory.mktemp("prefect"), prefect_database) as server, used_here(server):
        yield server.home
