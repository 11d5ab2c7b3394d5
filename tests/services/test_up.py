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

from flows.world.setting import World
from tests.services.test_demo import left_running

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
    answer = spinney("up", "--out", world.folder, "--json")
    assert answer.returncode == 0, answer.stderr
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def deployments(there: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.post(f"{there['prefect']}/api/deployments/filter", json={}, timeout=60).json()
    return found


def test_every_house_has_a_deployment_with_the_schedule_of_the_study(world: World, there: dict[str, Any]):
    rounds = {one["name"].partition("-")[0]: one for one in deployments(there)}
    assert sorted(rounds) == sorted(world.houses)
    assert all(one["schedules"][0]["schedule"]["cron"] == "0 2 * * *" for one in rounds.values())


def test_the_registry_of_a_hospital_can_be_looked_at(there: dict[str, Any]):
    assert httpx.get(f"{there['mlflow']}/health", timeout=60).status_code == 200


def test_a_second_up_shows_the_same_world(world: World, there: dict[str, Any]):
    assert json.loads(spinney("up", "--out", world.folder, "--json").stdout) == there


@pytest.mark.usefixtures("there")
def test_a_night_beside_it_is_refused(world: World):
    answer = spinney("demo", "night", "--out", world.folder)
    assert (answer.returncode, "spinney down" in answer.stderr) == (2, True)


def test_a_night_that_somebody_starts_in_the_ui_ends_at_all_houses(world: World, there: dict[str, Any]):
    for one in deployments(there):
        run = f"{there['prefect']}/api/deployments/{one['id']}/create_flow_run"
        httpx.post(run, json={"state": {"type": "SCHEDULED"}}, timeout=60).raise_for_status()
    end = time.monotonic() + 900
    while not world.is_done(1):
        assert time.monotonic() < end, [world.result(house, 1) for house in world.houses]
        time.sleep(1)


@pytest.mark.usefixtures("there")
def test_down_leaves_nothing_running_and_can_be_said_twice(world: World):
    assert spinney("down", "--out", world.folder).stdout == "everything has ended\n"
    assert left_running(world.folder) == []
    assert spinney("down", "--out", world.folder).stdout.startswith("nothing is up in")
