"""The made-up world kept running: Prefect's server and UI, every house's flows on their schedule, a registry's UI.

One keeper process holds it all: python -m spinney.flows.demo.kept FOLDER. It writes `up.json` when all answers, and
takes everything with it when it is asked to end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from spinney.demo.leftovers import end_noted
from spinney.flows.demo.night import WrongNight, alone_in, end_orphans, running
from spinney.flows.demo.prefect_server import (
    PrefectServer,
    ServerFailed,
    clean_environment,
    free_port,
    start_process,
    stop_process,
    wait_until,
)
from spinney.flows.demo.setting import LOG, Tell, World, refuse_strangers
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder

UP = "up.json"
STARTS_WITHIN = 400.0
ENDS_WITHIN = 90.0


def keep_up(world: World, tell: Tell) -> dict[str, Any]:
    """Start the keeper unless it runs; says where everything is."""
    if (known := state(world)) is not None:
        return known
    refuse_strangers(world.folder)
    private_folder(world.folder)
    (world.folder / UP).unlink(missing_ok=True)  # of a keeper that was killed
    tell(f"starting the world; what it says is in {world.folder / LOG}")
    keeper = start_process(
        [sys.executable, "-m", "spinney.flows.demo.kept", str(world.folder)],
        clean_environment(),
        world.folder / LOG,
        outlives=True,
    )
    try:
        wait_until(lambda: keeper.poll() is not None or (world.folder / UP).exists(), STARTS_WITHIN)
    except BaseException:
        stop_process(keeper, ENDS_WITHIN)
        raise
    known = state(world)
    if known is None:
        stop_process(keeper, ENDS_WITHIN)
        raise ServerFailed(f"the world did not start; its last words are in {world.folder / LOG}")
    return known


def take_down(world: World) -> bool:
    """End the keeper and everything it holds; says whether there was one."""
    known = state(world)
    if known is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(known["pid"], signal.SIGTERM)
    wait_until(lambda: state(world) is None, ENDS_WITHIN)
    for pid in known["processes"] if state(world) is not None else ():
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    end_noted(world.folder / "prefect")  # what a keeper that was slow to end could not end itself
    (world.folder / UP).unlink(missing_ok=True)
    return True


def state(world: World) -> dict[str, Any] | None:
    """What the keeper has written, if it lives."""
    try:
        known: dict[str, Any] = json.loads((world.folder / UP).read_bytes())
    except FileNotFoundError:
        return None
    try:
        with alone_in(world.folder):
            return None  # nobody holds the world: what is written is left from one that was killed
    except WrongNight:
        return known


def keep(world: World) -> None:
    """Hold the world until somebody ends this process, or until a part of it ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    night = next(number for number in range(1, 61) if not world.is_done(number))
    with alone_in(world.folder), running(world, night, _say) as server, ExitStack() as parts:
        with server.http() as client:
            end_orphans(client)
        parts.callback((world.folder / UP).unlink, missing_ok=True)
        registry, address = _registry(world, server)
        serving = start_process(
            [sys.executable, "-m", "spinney.flows.demo.serving", str(world.folder)],
            server.environment,
            server.home / "serving.log",
        )
        processes = {"registry": registry, "serving": serving}
        for process in processes.values():
            parts.callback(stop_process, process, 20)
        _await(processes, server, address, len(world.houses))
        told = {
            "pid": os.getpid(),
            "processes": [os.getpid(), *(process.pid for process in processes.values())],
            "prefect": server.ui,
            "mlflow": address,
            "night": night,
        }
        write_whole(world.folder / UP, json.dumps(told, indent=2).encode())
        while all(process.poll() is None for process in processes.values()):
            time.sleep(1)


def _registry(world: World, server: PrefectServer) -> tuple[subprocess.Popen[bytes], str]:
    """MLflow's UI for the first hospital; every hospital has a registry of its own."""
    home, port = world.village.home(world.village.sites[0]), free_port()
    database = f"sqlite:///{home / 'registry' / 'mlflow.db'}"
    command: list[str | Path] = [Path(sys.executable).parent / "mlflow", "server", "--backend-store-uri", database]
    where = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = server.environment | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # eight processes for nobody
    return start_process([*command, *where], environment, server.home / "mlflow.log"), f"http://127.0.0.1:{port}"


def _await(processes: Mapping[str, subprocess.Popen[bytes]], server: PrefectServer, registry: str, houses: int) -> None:
    def ready(client: httpx.Client) -> bool:
        for name, process in processes.items():
            if process.poll() is not None:
                raise ServerFailed(f"{name} has ended; its last words are in {server.home}")
        try:
            answer = client.post("deployments/count", json={})
            there = client.get(f"{registry}/health")
        except httpx.HTTPError:
            return False
        return answer.status_code == there.status_code == 200 and answer.json() >= houses

    with server.http() as client:
        if not wait_until(lambda: ready(client), STARTS_WITHIN):
            raise ServerFailed(f"not everything answers; last words are in {server.home}")


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        keep(World(Path(sys.argv[1])))
