"""The steps of a round as task runs that people can read, and one progress bar over them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact

from spinney.tasks.artifacts import artifact_key
from spinney.tasks.at_once import at_once
from spinney.tasks.guarded import guards_patients
from spinney.tasks.retries import NO_TRACE


@task(name="step", task_run_name="{name}", **NO_TRACE)
@guards_patients
def errand(name: str, work: Callable[[], Any]) -> Any:  # noqa: ARG001 (the run's name)
    """A piece of work under a name. What it has done is in the house's memory and outbox, so it is never done twice."""
    return work()


class Steps:
    """Runs the steps of a round as tasks; most rounds have this many. The bar is drawn aside: no step waits for it."""

    def __init__(self, *words: str, usual: int = 7) -> None:
        key = artifact_key(*words, "round")
        shown = create_progress_artifact(0.0, key=key, description="Steps of the round that are done.")
        self._artifact = at_once(shown)
        self._done, self._usual = 0, usual
        self._aside = ThreadPoolExecutor(1, "progress")

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        result = errand(name, work)
        self._done += 1
        self._show(min(99.0, 100.0 * self._done / self._usual))
        return result

    def end(self) -> None:
        """The round is over."""
        self._show(100.0)
        self._aside.shutdown()

    def _show(self, progress: float) -> None:
        draw = partial(update_progress_artifact, self._artifact, progress=progress)
        self._aside.submit(copy_context().run, draw)
