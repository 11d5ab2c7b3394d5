"""The made-up world kept running: a night that somebody starts by hand, and an end that leaves nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from spinney.flows.demo.setting import World
from tests.servers.left_running import left_running
from tests.servers.prefect_server import wait_until

SPINNEY = Path(sys.executable).parent / "spinney"
pytestmark = [pytest.mark.service, pytest.mark.timeout(1500)]


def spinney(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SPINNEY, *map(str, words)], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("up") / "world"
    yield World(folder)
    spinney("down", "--out", folder)


@pytest.fixture(scope="module")
def there(world: World) -> dict[str, Any]:
    answer = spinney("up", "--out", world.folder, "--json", "--yes")
    assert answer.returncode == 0, answer.stderr
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def rounds(there: dict[str, Any]) -> list[dict[str, Any]]:
    """The deployments that take part in a round; a site has others beside it."""
    found: list[dict[str, Any]] = httpx.post(f"{there['prefect']}/api/deployments/filter", json={}, timeout=60).json()
    return [one for one in found if one["entrypoint"].endswith("_round")]


def start(there: dict[str, Any], deployment: dict[str, Any]) -> None:
    """As a click does; a server whose database is busy says so with a 503, and one clicks again."""
    run = f"{there['prefect']}/api/deployments/{deployment['id']}/create_flow_run"
    once = {"state": {"type": "SCHEDULED"}, "idempotency_key": f"by hand, {deployment['id']}"}
    answer = wait_until(lambda: _unless_busy(httpx.post(run, json=once, timeout=60)), 120)
    answer.raise_for_status()


def _unless_busy(answer: httpx.Response) -> httpx.Response | None:
    return None if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE else answer


def test_every_house_has_a_deployment_with_the_schedule_of_the_study(world: World, there: dict[str, Any]):
    by_house = {one["name"].partition("-")[0]: one for one in rounds(there)}
    assert sorted(by_house) == sorted(world.houses)
    assert all(one["schedules"][0]["schedule"]["cron"] == "0 2 * * *" for one in by_house.values())


def test_the_registry_of_a_hospital_can_be_looked_at(there: dict[str, Any]):
    assert httpx.get(f"{there['mlflow']}/health", timeout=60).status_code == 200


def test_the_registry_s_server_starts_none_of_the_processes_for_jobs(there: dict[str, Any]):
    groups = {str(pid) for pid in there["processes"]}
    running = subprocess.run(["ps", "-eo", "pgid=,args="], capture_output=True, text=True, check=True).stdout
    ours = [line for line in running.splitlines() if line.split()[0] in groups]
    assert any("mlflow" in line for line in ours)
    assert not [line for line in ours if "mlflow.server.jobs" in line]


def test_a_second_up_shows_the_same_world(world: World, there: dict[str, Any]):
    assert json.loads(spinney("up", "--out", world.folder, "--json").stdout) == there


@pytest.mark.usefixtures("there")
def test_a_night_beside_it_is_refused(world: World):
    answer = spinney("demo", "night", "--out", world.folder)
    assert (answer.returncode, "spinney down" in answer.stderr) == (2, True)


def test_a_night_that_somebody_starts_in_the_ui_ends_at_all_houses(world: World, there: dict[str, Any]):
    for one in rounds(there):
        start(there, one)
    end = time.monotonic() + 900
    while not world.is_done(1):
        assert time.monotonic() < end, [world.result(house, 1) for house in world.houses]
        time.sleep(1)


@pytest.mark.usefixtures("there")
def test_down_leaves_nothing_running_and_can_be_said_twice(world: World):
    assert spinney("down", "--out", world.folder).stdout == "everything has ended\n"
    wait_until(lambda: left_running(world.folder) == [], 10, lambda: left_running(world.folder))
    assert spinney("down", "--out", world.folder).stdout.startswith("nothing is up in")
