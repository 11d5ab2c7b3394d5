"""All houses' flows of one night, a thread each, in one process: python -m spinney.flows.demo.houses FOLDER NIGHT.

Five processes would import everything five times, which two cores don't do in a minute. The houses share nothing else:
each has its settings, keys, memory and registry, and they speak through the exchange only. The exit code is how many
houses failed; why is in the log and in Prefect.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow_sync

from spinney.demo.federation import COORDINATOR, Village
from spinney.flows.coordinator_round import CoordinatorRoundInput, coordinator_round
from spinney.flows.served import serve_houses
from spinney.flows.site_round import SiteRoundInput, site_round


def run_houses(village: Village, night: int) -> int:
    """Run all flows at once; says how many failed."""
    serve_houses(sites=tuple(map(village.site_file, village.sites)), coordinators=(village.coordinator_file,))
    flows: dict[str, tuple[Flow[..., Any], dict[str, Any]]] = {
        name: (site_round, {"run": SiteRoundInput(site=name, number=night)}) for name in village.sites
    }
    flows[COORDINATOR] = (coordinator_round, {"run": CoordinatorRoundInput(coordinator=COORDINATOR, number=night)})
    # One after the other, as a schedule makes them: a server with SQLite that is asked for several at once
    # sends all but one away, and they come again seconds later.
    with get_client(sync_client=True) as client:
        runs = {
            house: client.create_flow_run(flow, parameters=flow.serialize_parameters(given))
            for house, (flow, given) in flows.items()
        }
    with ThreadPoolExecutor(len(flows)) as houses:
        running = [houses.submit(run_flow_sync, flow, runs[house], given) for house, (flow, given) in flows.items()]
        return sum(one.exception() is not None for one in running)


if __name__ == "__main__":
    from spinney.flows.demo.setting import World

    sys.exit(run_houses(World(Path(sys.argv[1])).village, int(sys.argv[2])))
