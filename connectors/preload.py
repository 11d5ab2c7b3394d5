"""Libraries that take a second or more to import, loaded beside what leaves the processor idle: pulling and waiting."""

from __future__ import annotations

from functools import cache
from threading import Thread

from connectors.quality import great_expectations
from connectors.registry.store import empty_database, quiet_mlflow


@cache
def preload(local_registry: bool) -> Thread:
    """Begin to load what every night of a site needs later; once per process, and nobody has to wait for it."""
    thread = Thread(target=_load, args=(local_registry,), name="preload")
    thread.start()
    return thread


def _load(local_registry: bool) -> None:
    great_expectations()
    quiet_mlflow()
    if local_registry:
        empty_database()
