"""A village to be disturbed, and what an undisturbed night of it gives."""

from __future__ import annotations

import pytest

from tests.chaos.disturbed import Disturbed
from tests.servers.prefect_server import PrefectServer


@pytest.fixture(scope="session")
def disturbed(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Disturbed:  # noqa: ARG001
    """Its flows run on the shared server: the houses inherit this process's environment."""
    return Disturbed(tmp_path_factory.mktemp("village"))
