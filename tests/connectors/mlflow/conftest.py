"""A finished round, and a registry to keep its models in."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.mlflow import Registry
from tests.servers.migrated import registry_in
from tests.spinney.in_process import Wood, cohorts, study


@pytest.fixture(scope="session")
def wood() -> Wood:
    """A finished round of four sites."""
    made = Wood(study(), cohorts(study()))
    made.run()
    return made


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return registry_in(tmp_path)
