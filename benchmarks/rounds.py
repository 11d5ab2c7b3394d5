"""Seconds of whole nights under Prefect: from the start of the flows to registered models, with everything up.

    python -m benchmarks.rounds                               # 4 sites x 25 trees of breast cancer over a folder
    python -m benchmarks.rounds --sites 20 --trees 100 --store s3

One Prefect server is started first and not counted. Sites and coordinator run as threads of this process; the first
night also imports libraries and makes the sites' registries, so nights are printed one by one.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from connectors.audit import Audit
from connectors.report_facts import of_round, steps_in
from connectors.village import COORDINATOR, Village
from tests.servers.prefect_server import PrefectServer, migrated_database
from tests.servers.seaweed import BUCKET, KEY, SECRET, Seaweed
from tests.villages import breast_village


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--trees", type=int, default=25)
    parser.add_argument("--nights", type=int, default=3)
    parser.add_argument("--store", choices=["folder", "s3"], default="folder")
    arguments = parser.parse_args()
    prefect = version("prefect")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, Prefect {prefect}")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        exchange = _store(folder, stack) if arguments.store == "s3" else None
        (folder / "prefect").mkdir()
        server = stack.enter_context(PrefectServer(folder / "prefect", migrated_database(folder / "template")))
        os.environ.update(server.settings)
        sites = [f"site{number:02d}" for number in range(1, arguments.sites + 1)]
        # a twentieth of 569 patients are 28: the floor of the study is lowered for the sake of many sites
        small = {"smallest_cohort": 10} if arguments.sites > 10 else {}
        village = breast_village(
            folder, sites, exchange, trees=arguments.trees, privacy=small,
            schedule={"answer_minutes": 20, "opening_minutes": 20},
        )  # fmt: skip
        print(f"\n{arguments.sites} sites x {arguments.trees} trees over {arguments.store}")
        for number in range(1, arguments.nights + 1):
            _night(village, number)
        _steps(village, arguments.nights)


def _store(folder: Path, stack: ExitStack) -> dict[str, Any]:
    (folder / "weed").mkdir()
    store = stack.enter_context(Seaweed(folder / "weed"))
    os.environ.update({"EXCHANGE_KEY": KEY, "EXCHANGE_SECRET": SECRET})
    return {
        "url": f"s3://{BUCKET}",
        "options": {"endpoint_url": store.options()["endpoint_url"]},
        "secrets": {"key": "EXCHANGE_KEY", "secret": "EXCHANGE_SECRET"},
    }


def _night(village: Village, number: int) -> None:
    began = time.monotonic()
    from flows.coordinator_round import CoordinatorRound, coordinator_round
    from flows.site_round import SiteRound, site_round

    with ThreadPoolExecutor(len(village.sites) + 1) as pool:
        running = [pool.submit(site_round, SiteRound(site=village.site_file(name))) for name in village.sites]
        round_ = pool.submit(coordinator_round, CoordinatorRound(coordinator=village.coordinator_file)).result()
        versions = [future.result()["version"] for future in running]
    took = time.monotonic() - began
    print(
        f"night {number}: {took:6.1f} s to {len(versions)} registered models; absent: {len(round_['absent'])}",
        flush=True,
    )


def _steps(village: Village, number: int) -> None:
    lines = of_round(Audit(village.home(COORDINATOR) / "audit.jsonl").lines(), village.study, number)
    print("\n| step | seconds | bytes at the coordinator | answers |\n|---|---:|---:|---:|")
    for step in steps_in(lines):
        print(f"| {step.name} | {step.seconds:.2f} | {step.bytes:,} | {step.answers} |")


if __name__ == "__main__":
    main()
