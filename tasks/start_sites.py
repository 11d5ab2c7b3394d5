"""Where all houses share one Prefect server, the coordinator starts the sites' runs."""

from __future__ import annotations

from collections.abc import Mapping

from prefect import task
from prefect.client.schemas.objects import StateType
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_run_logger

from spinney.tasks.at_once import at_once
from spinney.tasks.guarded import guards_patients
from spinney.tasks.retries import NO_TRACE

MOST_TRIES = 3
LOST = {StateType.CRASHED, StateType.CANCELLED, StateType.FAILED}


@task(task_run_name="start the sites of round {number}", **NO_TRACE)
@guards_patients
def start_sites(deployments: Mapping[str, str], study: str, number: int) -> None:
    """One run per site and round; a coordinator that begins again starts only the sites whose run was lost."""
    for site, deployment in deployments.items():
        try:
            _start(deployment, f"{study}/{number}/{site}")
        except (ObjectNotFound, ValueError):
            get_run_logger().warning("%s has no deployment %s; the round goes on without it", site, deployment)


def _start(deployment: str, key: str) -> None:
    for attempt in range(1, MOST_TRIES + 1):  # a key gives the same run for ever, also one that was lost
        run = at_once(run_deployment(deployment, timeout=0, as_subflow=False, idempotency_key=f"{key}/{attempt}"))
        if run.state is None or run.state.type not in LOST:
            return
