"""Libraries that take a second or more to import, loaded beside what leaves the processor idle: pulling and waiting."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Event, Thread

from spinney.connectors.great_expectations.quality import great_expectations
from spinney.connectors.mlflow.store import empty_database, quiet_mlflow

GROWING = ("spinney.choice.model", "spinney.forest.grower", "spinney.forest.walk", "sklearn.tree")
READY = Event()


@cache
def preload(local_registry: bool) -> Thread:
    """Begin to load what every night of a site needs later; once per process."""
    thread = Thread(target=_load, args=(local_registry,), name="preload")
    thread.start()
    return thread


def preloaded() -> None:
    """Wait for what checks patients and grows trees. Two threads that import it at once may lock each other out."""
    READY.wait()


def _load(local_registry: bool) -> None:
    with _uncollected():
        try:
            great_expectations()
            for name in GROWING:
                import_module(name)
        finally:
            READY.set()  # whoever needs what can't be loaded finds out why
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
