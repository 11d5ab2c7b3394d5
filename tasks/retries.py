"""How a task is tried again and what it leaves behind: retry what can heal, leave no trace of patients."""

from __future__ import annotations

from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from spinney.errors import SpinneyError


def is_transient(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:  # noqa: ARG001 (Prefect's signature)
    """True for a busy server or a broken connection; bad data and wrong settings never heal."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, SpinneyError) and bool(getattr(error, "transient", False))


TRANSIENT: dict[str, Any] = {
    "retries": 4,
    "retry_delay_seconds": exponential_backoff(10),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": is_transient,
}
SHARE_OF_THE_NIGHT = 0.8  # of the time in which an answer counts: what comes later comes too late
LONGEST_DELAY = 300.0


def through_the_night(minutes: float) -> dict[str, Any]:
    """Retries, ever farther apart, as long as a site that joins then is still in time."""
    delays, delay = list[float](), 10.0
    while sum(delays) + delay <= 60 * minutes * SHARE_OF_THE_NIGHT:
        delays.append(delay)
        delay = min(2 * delay, LONGEST_DELAY)
    return {"retries": len(delays), "retry_delay_seconds": delays or None}


NO_TRACE: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "log_prints": False}
