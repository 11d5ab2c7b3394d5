"""A site's registry for tests, ready at once."""

from __future__ import annotations

from pathlib import Path

from connectors.house import RegistrySettings
from connectors.registry import Registry
from connectors.registry.store import ensure_database


def registry_in(home: Path) -> Registry:
    """The database is migrated once per test process and copied."""
    registry = Registry(home, RegistrySettings())
    ensure_database(registry.folder / "mlflow.db")
    return registry
