"""All houses' flows of one night, a thread each, in one process: python -m flows.world.houses FOLDER NIGHT.

Five processes would import everything five times, which two cores don't do in a minute. The houses share nothing else:
each has its settings, keys, memory and registry, and they speak through the exchange only. The exit code is how many
houses failed; why is in the log and in Prefect.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from prefect.client.orchestration import get_client

from connectors.village import COORDINATOR, Village
from flows.coordinator_round import CoordinatorRound, coordinator_round
from flows.site_round import SiteRound, site_round


def run_houses(village: Village, night: int) -> int:
    """Run all flows at once; says how many failed."""
    with get_client(sync_client=True) as client:
        client.hello()  # in one thread first: Prefect must not find its server in five threads at once
    with ThreadPoolExecutor(len(village.sites) + 1) as houses:
        running = {site: houses.submit(_site, village, site, night) for site in village.sites}
        running[COORDINATOR] = houses.submit(_coordinator, village, night)
        return sum(one.exception() is not None for one in running.values())


def _site(village: Village, name: str, night: int) -> dict[str, Any]:
    return site_round(SiteRound(site=village.site_file(name), number=night))


def _coordinator(village: Village, night: int) -> dict[str, Any]:
    return coordinator_round(CoordinatorRound(coordinator=village.coordinator_file, number=night))


if __name__ == "__main__":
    from flows.world.setting import World

    sys.exit(run_houses(World(Path(sys.argv[1])).village, int(sys.argv[2])))
