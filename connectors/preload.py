"""Libraries that take a second or more to import, loaded beside what leaves the processor idle: pulling and waiting."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
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
    with _uncollected():
        great_expectations()
        import_module("spinney.model")  # scikit-learn
        quiet_mlflow()
    if local_registry:
        empty_database()


@contextmanager
def _uncollected() -> Iterator[None]:
    """What an import makes stays: looking through it for garbage again and again takes a sixth of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
