"""Houses as processes that are up at once, though their libraries are slow to import: forked from one that has them."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from multiprocessing.process import BaseProcess

from spinney.demo.federation import COORDINATOR, Village
from tests.chaos.house import run_house
from tests.servers.prefect_server import environment_used_here

FLOWS = ["spinney.flows.site_round", "spinney.flows.coordinator_round", "tests.chaos.house"]
SLOW_TO_IMPORT = ["great_expectations", "mlflow", "spinney.choice.model", *FLOWS]


def start_house(village: Village, house: str, environment: Mapping[str, str]) -> BaseProcess:
    """A night of one house, in round 1: with this process's environment, and what is given here on top of it."""
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload(SLOW_TO_IMPORT)
    process = fork.Process(target=_run, args=({**os.environ, **environment}, *_arguments(village, house)), name=house)
    process.start()
    return process


def end_of(process: BaseProcess, seconds: float) -> int:
    """How it ended; one that doesn't is killed."""
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError(f"{process.name} did not end in {seconds:.0f} s")
    assert process.exitcode is not None
    return process.exitcode


def _arguments(village: Village, house: str) -> tuple[str, str]:
    """What `run_house` is told."""
    if house == COORDINATOR:
        return "coordinator", str(village.coordinator_file)
    return "site", str(village.site_file(house))


def _run(environment: dict[str, str], role: str, file: str) -> None:
    os.environ.clear()  # what it has is that of the process which it was forked from
    os.environ.update(environment)
    with environment_used_here():
        run_house(role, file)
