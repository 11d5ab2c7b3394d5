"""A real Prefect server for tests: the demo's own, quicker at looking for work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from spinney.flows.demo import prefect_server
from spinney.flows.demo.prefect_server import clean_environment, migrated_database, quiet_settings

__all__ = [
    "PrefectServer",
    "clean_environment",
    "environment_used_here",
    "migrated_database",
    "quiet_settings",
    "used_here",
    "wait_until",
]
T = TypeVar("T")


class PrefectServer(prefect_server.PrefectServer):
    """`with PrefectServer(folder, template) as server:` then processes run with `server.environment`."""

    def __init__(self, folder: Path, template: Path, settings: dict[str, str] | None = None) -> None:
        quick = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5"}
        super().__init__(folder, template, {**quick, **(settings or {})})

    @property
    def settings(self) -> dict[str, str]:
        quick = {"PREFECT_RUNNER_POLL_FREQUENCY": "1", "PREFECT_RUNNER_HEARTBEAT_FREQUENCY": "30"}
        return {**super().settings, **quick}

    def client(self) -> Any:
        """For looking, in a process that runs with these settings."""
        from prefect.client.orchestration import get_client

        return get_client(sync_client=True)


@contextmanager
def used_here(server: PrefectServer) -> Iterator[None]:
    """Flows of this process, and of those that inherit its environment, run on this server."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.settings.items():
            patch.setenv(name, value)
        with environment_used_here():
            yield


@contextmanager
def environment_used_here() -> Iterator[None]:
    """Prefect's settings as the environment has them now, not as it had them when Prefect was imported."""
    import prefect.context
    from prefect.settings import Profile

    from_environment = prefect.context.use_profile(Profile(name="tests", settings={}), include_current_context=False)
    with pytest.MonkeyPatch.context() as patch, from_environment as settings:
        # threads know no context: without this, they would have what was set when Prefect was imported
        patch.setattr(prefect.context, "GLOBAL_SETTINGS_CONTEXT", settings)
        yield
        _say_everything()


def _say_everything() -> None:
    """Logs and events of this process go out while the server is there; later, they would be waited for in vain."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=20)
    EventsWorker.drain_all(timeout=20)


def wait_until(look: Callable[[], T], seconds: float, explain: Callable[[], object] = lambda: "nothing more") -> T:
    """What `look` finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds} s; last words: {explain()}"
        time.sleep(0.1)
    return found
