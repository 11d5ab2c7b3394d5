"""MLflow's database, migrated once per test process and copied: its many small commits take seconds on a slow disk."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from connectors.house import RegistrySettings
from connectors.registry import Registry


def registry_in(home: Path) -> Registry:
    """A site's registry that is ready at once."""
    database = home / "registry" / "mlflow.db"
    if not database.exists():
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(_template(), database)
    return Registry(home, RegistrySettings())


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Registry(folder, RegistrySettings()).store.versions("nothing")
    return folder / "registry" / "mlflow.db"
