"""What a house serves is ended where a power cut left it behind, and gone on with, also while it is served.

A run whose process is gone stays Running in Prefect for ever and keeps the deployment's only slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Cancelled, Crashed

UNFINISHED = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
SHUT_DOWN = "Runner is shutting down."  # how Prefect's runner says that it was stopped, not the run
FRESH = timedelta(hours=12)
PATIENCE = (timedelta(0), timedelta(minutes=5), timedelta(minutes=30))  # before the first try, the second, ...
MOST_TRIES = len(PATIENCE)
AGAIN = re.compile(r"^again-([1-9])$")


@dataclass(frozen=True)
class Swept:
    """What the janitor did, by run name."""

    ended: tuple[str, ...]
    resumed: tuple[str, ...]
    missed: tuple[str, ...]

    def __str__(self) -> str:
        parts = [("ended, their process is gone", self.ended), ("started again", self.resumed)]
        parts += [("nights that are past, cancelled", self.missed)]
        return "; ".join(f"{words}: {', '.join(names)}" for words, names in parts if names) or "nothing was left behind"


def sweep(client: SyncPrefectClient, deployments: Iterable[UUID]) -> Swept:
    """Tidy up after the serving process that was here before; it must be gone."""
    ended, resumed, missed = [], [], []
    now = datetime.now(UTC)
    for deployment in deployments:
        orphans = [run for run in _runs(client, deployment, UNFINISHED) if not _is_alive(run.id)]
        for run in orphans:
            client.set_flow_run_state(run.id, Crashed(message="its process was lost"), force=True)
            ended.append(run.name)
        due = [run for run in _runs(client, deployment, [StateType.SCHEDULED]) if _planned(run) <= now]
        for run in [run for run in due if run.auto_scheduled][:-1]:
            client.set_flow_run_state(run.id, Cancelled(message="this night is past; the newest one runs"), force=True)
            missed.append(run.name)
        interrupted = _interrupted(client, deployment, orphans, now)
        if interrupted is not None and not due:
            _start_again(client, deployment, interrupted)
            resumed.append(interrupted.name)
    return Swept(tuple(ended), tuple(resumed), tuple(missed))


def revive(client: SyncPrefectClient, deployments: Iterable[UUID], now: datetime | None = None) -> list[str]:
    """Start runs again whose process was killed while this house was served: at once, then with growing patience."""
    now = now or datetime.now(UTC)
    revived = []
    for deployment in deployments:
        crashed = _runs(client, deployment, [StateType.CRASHED])
        dead = [run for run in crashed if not _is_alive(run.id) and now - _ended(run) < FRESH]
        newest = _interrupted(client, deployment, dead, now) if dead else None
        if newest in dead and now - _ended(newest) >= PATIENCE[_tries(newest)]:
            _start_again(client, deployment, newest)
            revived.append(newest.name)
    return revived


def _runs(client: SyncPrefectClient, deployment: UUID, types: list[StateType]) -> list[FlowRun]:
    """The oldest first."""
    wanted = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[deployment]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=types)),
    )
    return client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.EXPECTED_START_TIME_ASC)


def _interrupted(
    client: SyncPrefectClient, deployment: UUID, orphans: Sequence[FlowRun], now: datetime
) -> FlowRun | None:
    """The newest run, if it was neither ended by itself nor by a person, is fresh and was not tried too often."""
    cancelled = _runs(client, deployment, [StateType.CANCELLED])
    stopped = [run for run in cancelled if run.state is not None and run.state.message == SHUT_DOWN]
    candidates = sorted([*orphans, *stopped], key=_planned)
    if not candidates:
        return None
    newest = candidates[-1]
    later = [run for run in _runs(client, deployment, [*StateType]) if _planned(run) > _planned(newest)]
    superseded = any(run.state_name != "Scheduled" or not run.auto_scheduled for run in later)
    return None if superseded or now - _planned(newest) > FRESH or _tries(newest) >= MOST_TRIES else newest


def _start_again(client: SyncPrefectClient, deployment: UUID, run: FlowRun) -> None:
    tags = [tag for tag in run.tags if not AGAIN.match(tag)]
    client.create_flow_run_from_deployment(
        deployment,
        parameters=run.parameters,
        tags=[*tags, f"again-{_tries(run) + 1}"],
        idempotency_key=f"again-{run.id}",
    )


def _tries(run: FlowRun) -> int:
    return max((int(found[1]) for tag in run.tags if (found := AGAIN.match(tag))), default=0)


def _ended(run: FlowRun) -> datetime:
    return run.end_time or (run.state.timestamp if run.state else _planned(run))


def _planned(run: FlowRun) -> datetime:
    return run.expected_start_time or cast(datetime, run.created)  # which a server tells of every run


def _is_alive(run: UUID) -> bool:
    """Whether a process on this machine is still at it: it may have outlived the one that served it."""
    mark = f"PREFECT__FLOW_RUN_ID={run}".encode()
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in process.read_bytes().split(b"\0"):
                return True
        except OSError:  # gone by now, or somebody else's
            continue
    return False
