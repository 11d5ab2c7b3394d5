"""All houses' flows served by one process: python -m spinney.flows.demo.serving FOLDER.

In life every house has a process of its own (`spinney site serve`), and a Prefect server of its own.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prefect.deployments.runner import RunnerDeployment

from spinney.flows.demo.setting import World
from spinney.flows.running.plan import ServedHouse, apply_plan, planned
from spinney.flows.running.serve import Polite
from spinney.flows.served import serve_houses


async def _run(deployments: list[RunnerDeployment]) -> None:
    runner = Polite(name="made-up world", pause_on_shutdown=False)
    for deployment in deployments:
        await runner.aadd_deployment(deployment)
    await runner.start()


def serve_world(world: World) -> None:
    """Apply every house's deployments, then run what is due until somebody stops this process."""
    village = world.village
    houses = [ServedHouse.read("site", village.site_file(site)) for site in village.sites]
    houses.append(ServedHouse.read("coordinator", village.coordinator_file))
    serve_houses(sites=tuple(map(village.site_file, village.sites)), coordinators=(village.coordinator_file,))
    plans = {house.name: planned(house) for house in houses}
    for house in houses:
        apply_plan(house, plans[house.name])
    asyncio.run(_run([one for plan in plans.values() for one in plan]))


if __name__ == "__main__":
    serve_world(World(Path(sys.argv[1])))
