"""A whole night of the made-up world: set it up, run all houses under one Prefect server, watch, stop everything."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from spinney.demo.leftovers import end_noted
from spinney.errors import SpinneyError
from spinney.flows.demo.prefect_server import (
    PrefectServer,
    migrated_database,
    start_process,
    stop_process,
    template_file,
)
from spinney.flows.demo.setting import LOCK, Tell, World, found_world, refuse_strangers, tonight
from spinney.storage import locks
from spinney.storage.files import installation_folder
from spinney.storage.private import private_folder

LOOK_EVERY = 0.4
UNNAMED = re.compile(r"-[0-9a-f]{3}$")  # what Prefect calls a task run before it starts


class NightFailed(SpinneyError):
    """Some houses did not end their night; the message says which and why."""


class WrongNight(SpinneyError):
    """This night can't be run now."""


@dataclass(frozen=True)
class Doing:
    """What a house is at, as Prefect tells it."""

    step: str
    state: str
    """PENDING, RUNNING, COMPLETED, FAILED ..."""
    reason: str = ""


Show = Callable[[Mapping[str, Doing]], None]


def run_night(world: World, night: int, tell: Tell, show: Show) -> float:
    """Run a night that has not been run; says how many seconds it took after everything was set up."""
    if night > 1 and not world.is_done(night - 1):
        raise WrongNight(f"night {night} follows night {night - 1}, which has not been run; run that one first")
    with alone_in(world.folder), running(world, night, tell) as server, server.http() as client:
        end_orphans(client)
        tell(f"night {night}: five flows under {server.ui}")
        began = time.monotonic()
        command = [sys.executable, "-m", "spinney.flows.demo.houses", str(world.folder), str(night)]
        houses = start_process(command, server.environment, server.home / "houses.log")
        try:
            while houses.poll() is None:
                show(look_in(client, night))
                time.sleep(LOOK_EVERY)
        finally:
            stop_process(houses, patience=5)
        doing = look_in(client, night)
        show(doing)
    if not world.is_done(night):
        raise NightFailed(_why(doing, server.home / "houses.log"))
    return time.monotonic() - began


@contextmanager
def running(world: World, night: int, tell: Tell) -> Iterator[PrefectServer]:
    """Tonight's world and its Prefect server, which starts while the data are written."""
    found_world(world, tell)
    end_noted(world.folder / "prefect")
    cache = installation_folder() or world.folder
    server = PrefectServer(world.folder / "prefect", template_file(cache))
    if not server.template.exists():
        tell("making Prefect's database, once for all worlds")
    try:
        with ThreadPoolExecutor(1) as aside:
            starting = aside.submit(_start, server, cache)
            try:
                with tonight(world, night, tell):
                    tell("waiting for the Prefect server")
                    starting.result()
                    yield server
            finally:
                server.stop()
    finally:
        server.stop()  # if we were interrupted before it had even begun


def _start(server: PrefectServer, cache: Path) -> None:
    migrated_database(cache)
    server.start()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """One run in a folder at a time."""
    refuse_strangers(folder)
    busy = WrongNight(f"the world in {folder} is at work already; wait for it, or run: spinney down")
    with locks.alone(private_folder(folder) / LOCK, busy):
        yield


def look_in(client: httpx.Client, night: int) -> dict[str, Doing]:
    """What every house is at; nothing while the server has no answer."""
    try:
        runs = [run for run in reversed(_ask(client, "flow_runs", {})) if run["state_type"] != "CRASHED"]
        newest = {house: run for run in runs if (house := _whose(run, night))}
        ids = [run["id"] for run in newest.values()]
        steps = _ask(client, "task_runs", {"flow_runs": {"id": {"any_": ids}}}) if ids else []
    except (httpx.HTTPError, ValueError):
        return {}
    last: dict[str, str] = {}
    for step in steps:
        if not UNNAMED.search(step["name"]):
            last.setdefault(step["flow_run_id"], step["name"])
    return {
        house: Doing(last.get(run["id"], "waiting"), run["state_type"], (run["state"] or {}).get("message") or "")
        for house, run in newest.items()
    }


def _whose(run: Mapping[str, Any], night: int) -> str:
    """The house. By tags it would be simpler, but then every task asks the server about them."""
    asked = run["parameters"].get("run", {})
    house: str = asked.get("site") or asked.get("coordinator") or ""
    return house if asked.get("number") == night else ""


def end_orphans(client: httpx.Client) -> None:
    """Runs whose processes were stopped with everything else would look alive for ever."""
    lost = {"state": {"type": "CRASHED", "message": "stopped with its world"}, "force": True}
    for run in _ask(client, "flow_runs", {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING"]}}}}):
        client.post(f"flow_runs/{run['id']}/set_state", json=lost).raise_for_status()


def _ask(client: httpx.Client, what: str, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Runs by Prefect's API, the newest first."""
    content = {**wanted, "sort": "EXPECTED_START_TIME_DESC", "limit": 200}
    answer = client.post(f"{what}/filter", json=content)
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()
    return found


def _why(doing: Mapping[str, Doing], log: Path) -> str:
    failed = [f"{house}: {one.reason}" for house, one in sorted(doing.items()) if one.state not in ("COMPLETED",)]
    return "; ".join([*failed, f"more is in {log}"])
