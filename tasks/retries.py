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
NO_TRACE: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "log_prints": False}
