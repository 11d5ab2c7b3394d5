"""The one process of a house that runs its flows: it never ends by itself, and systemd or a container restarts it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self, cast
from uuid import UUID

import httpx
from prefect.client.schemas.objects import FlowRun
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import PrefectException
from prefect.flows import Flow
from prefect.runner import Runner
from prefect.runner._hook_runner import HookRunner

from spinney.errors import SpinneyError
from spinney.flows.running.alerts import set_up
from spinney.flows.running.fixed import fix_flow, flow_of
from spinney.flows.running.janitor import revive, sweep
from spinney.flows.running.plan import PrefectAway, ServedHouse, apply_plan, planned, server
from spinney.flows.served import serve_houses
from spinney.storage import locks
from spinney.storage.private import private_folder

SECONDS_BETWEEN_LOOKS = 20.0
HEARTBEATS = 3  # so many fit into the time after which a silent run is taken for lost


class AlreadyServed(SpinneyError):
    """Another process serves this house."""


@contextmanager
def serving_alone(house: ServedHouse) -> Iterator[None]:
    """One serving process per house: the janitor of a second one would end the runs of the first."""
    busy = AlreadyServed(f"{house.name} is served already; stop the other process first: spinney {house.role} serve")
    with locks.alone(private_folder(house.home) / ".serve.lock", busy):
        yield


def serve(house: ServedHouse, say: Callable[[str], None]) -> None:
    """Apply deployments and alerts, sweep the floor, then run what is due until somebody stops this process."""
    if house.prefect.pool:
        raise PrefectAway(f"the workers of the pool {house.prefect.pool} run {house.name}'s flows; nothing to serve")
    os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(max(30, house.alerts.lost_seconds // HEARTBEATS)))
    serve_houses(**{f"{house.role}s": (house.file,)})
    with serving_alone(house):
        deployments = planned(house)
        applied = apply_plan(house, deployments)
        say(f"alerts: {set_up(house, applied)}")
        with server() as client:
            say(f"left from before: {sweep(client, applied.values())}")
        say(f"{house.role} {house.name} is served: {', '.join(applied)}")
        asyncio.run(_run(house, deployments, list(applied.values()), say))


async def _run(
    house: ServedHouse, deployments: Iterable[RunnerDeployment], known: list[UUID], say: Callable[[str], None]
) -> None:
    runner = Polite(name=house.tag, pause_on_shutdown=False)
    for deployment in deployments:
        await runner.aadd_deployment(deployment)
    watching = asyncio.create_task(_watch(known, say))
    try:
        await runner.start()
    finally:
        watching.cancel()


async def _watch(deployments: list[UUID], say: Callable[[str], None]) -> None:
    """Runs that are killed are started again; a server that is away is asked again later."""
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        with suppress(PrefectAway, httpx.HTTPError, PrefectException):
            for name in await asyncio.to_thread(_revived, deployments):
                say(f"started again, its process was killed: {name}")


def _revived(deployments: list[UUID]) -> list[str]:
    with server() as client:
        return revive(client, deployments)


async def _of_this_house(run: FlowRun) -> Flow[..., Any]:
    return flow_of(run.deployment_id)


class Polite(Runner):
    """Runs the flows that it was given, and no others that deployments were changed to.

    Ends its runs and then itself when it is told to; Prefect's own handler never awaits its stop.
    """

    async def aadd_deployment(self, deployment: RunnerDeployment) -> UUID:
        known = await super().aadd_deployment(deployment)
        fix_flow(known, str(deployment.entrypoint))
        return known

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        hooks = cast(HookRunner, self._hook_runner)
        hooks._resolve_flow = _of_this_house  # else the deployment's steps are run in this very process
        return self

    async def start(self, *args: Any, **kwargs: Any) -> None:
        self._home = asyncio.get_running_loop()
        await super().start(*args, **kwargs)

    def handle_sigterm(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.astop(), self._home)
