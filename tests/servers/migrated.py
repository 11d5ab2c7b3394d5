"""A site's registry for tests, ready at once."""

from __future__ import annotations

from pathlib import Path

from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry
from spinney.connectors.mlflow.store import ensure_database


def registry_in(home: Path) -> Registry:
    """The database is migrated once per test process and copied."""
    registry = Registry(home, RegistrySettings())
    ensure_database(registry.folder / "mlflow.db")
    return registry
