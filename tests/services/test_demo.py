"""The demo as people run it: a whole night, the next one, an interruption; and nothing is left running."""

from __future__ import annotations

import hmac
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from spinney.cohort.vault import PSEUDONYM_BYTES, Vault
from spinney.demo.history import make_history
from spinney.demo.site import world_study
from spinney.demo.table import finished_table
from spinney.flows.demo.setting import World
from spinney.house.audit import Audit
from spinney.rows.cohort import cohort_from_frame
from spinney.trial.simulate import simulate
from tests.names import refused_by_windows
from tests.servers.left_running import left_running
from tests.servers.prefect_server import wait_until

SPINNEY = Path(sys.executable).parent / "spinney"
pytestmark = [pytest.mark.service, pytest.mark.timeout(1500)]


def demo(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [SPINNEY, "demo", "night", "--out", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200)


def stopped(folder: Path, when: str, by: signal.Signals) -> tuple[int, str]:
    """A night that gets a signal as soon as it has said something; its exit code and what it said."""
    log = folder.with_suffix(f".{by.name}")
    with log.open("w") as out:
        run = subprocess.Popen(
            [SPINNEY, "demo", "night", "--out", str(folder)],
            stdout=out,
            stderr=out,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # ignored where tests run in the background
        )
        try:
            end = time.monotonic() + 900
            while when not in log.read_text():
                assert run.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.2)
            run.send_signal(by)
            return run.wait(60), log.read_text()
        finally:
            run.kill()
            run.wait()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world whose first night was killed with everything up."""
    world = World(tmp_path_factory.mktemp("demo") / "world")
    assert stopped(world.folder, "pull", signal.SIGKILL)[0] == -signal.SIGKILL
    return world


@pytest.fixture(scope="module")
def world(killed: World) -> World:
    """The same world: its second try was interrupted in the middle of the round."""
    code, said = stopped(killed.folder, "grow", signal.SIGINT)
    assert (code, "nothing is left running" in said) == (1, True)
    return killed


@pytest.fixture(scope="module")
def night(world: World) -> dict[str, Any]:
    """The same command again, which goes on where it stopped."""
    answer = demo(world.folder, "--json")
    assert answer.returncode == 0, answer.stderr
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def test_kill_9_leaves_nothing_running(killed: World):
    """Neither the Prefect server nor the houses, and not PostgreSQL, which is in a folder of its own."""
    site = yaml.safe_load(killed.village.site_file("beech").read_text())
    database = Path(make_url(site["source"]["url"]).query["host"]).parent
    wait_until(lambda: not left_running(killed.folder) and not left_running(database), 60)
    wait_until(lambda: not database.exists(), 60)


def test_ctrl_c_leaves_nothing_running(world: World):
    assert left_running(world.folder) == []


def test_a_night_that_was_interrupted_goes_on_and_ends(world: World, night: dict[str, Any]):
    assert night["coordinator"]["sites"] == list(world.village.sites)
    assert night["coordinator"]["absent"] == {}
    assert [one["aliases"] for one in night["sites"].values()] == [["champion"]] * 4
    assert left_running(world.folder) == []


def test_every_house_has_its_report(world: World, night: dict[str, Any]):
    assert len(night["reports"]) == len(world.houses)


def test_the_night_gives_the_figures_of_a_simulation_on_the_same_patients(world: World, night: dict[str, Any]):
    """SQLite, HTTP, PostgreSQL, files, five houses and an interruption between, and not a digit differs."""
    study, cohorts = world_study(), {}
    for hospital in world.hospitals:
        table = finished_table(make_history(hospital, world.seed), study).astype({study.label.name: int})
        vault = Vault(world.village.home(hospital.name))
        hidden = [hmac.digest(vault.key, who.encode(), "sha256")[:PSEUDONYM_BYTES].hex() for who in table["patient"]]
        cohorts[hospital.name] = replace(cohort_from_frame(table, study, hidden, vault.key), salt=vault.salt)
    outcomes = simulate(study, cohorts, workers=2).outcomes
    for site, one in night["sites"].items():
        expected = outcomes[site].auroc["chosen"]
        assert one["rows"] == outcomes[site].rows
        if expected is None:  # too few test patients of a class
            assert one["chosen"] is None
        else:
            assert one["chosen"]["value"] == pytest.approx(expected.value, abs=1e-12)
    assert any(one["chosen"] for one in night["sites"].values())


def test_only_what_the_audit_log_tells_left_a_house(world: World, night: dict[str, Any]):
    exchange = world.folder / "exchange"
    for site, one in night["sites"].items():
        there = sum(
            file.stat().st_size for file in (exchange / night["study"] / site / "1").rglob("*") if file.is_file()
        )
        noted = Audit(world.village.home(site) / "audit.jsonl").lines()
        assert (
            sum(line.entry.bytes for line in noted if line.entry.direction == "sent" and line.entry.round == 1) == there
        )
        assert sum(one["sent"].values()) == there


def test_no_patient_is_on_the_exchange_or_with_prefect(world: World, night: dict[str, Any]):
    marks = [f"{site}-0".encode() for site in night["sites"]]  # as every patient's number begins
    for place in (world.folder / "exchange", world.folder / "prefect"):
        for file in place.rglob("*"):
            content = file.read_bytes() if file.is_file() else b""
            assert not any(mark in content for mark in marks), file


@pytest.mark.usefixtures("night")
def test_a_second_run_says_that_the_night_is_done_and_shows_it(world: World):
    before = os.times()
    answer = demo(world.folder)
    after = os.times()
    assert answer.returncode == 0
    assert answer.stdout.startswith("night 1 is done; the next one: make demo NIGHT=2")
    assert "alder" in answer.stdout
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < 20, "of a processor, however busy the machine is; a night takes more"


def test_the_next_night_knows_one_more_day(world: World, night: dict[str, Any]):
    answer = demo(world.folder, "--night", "2", "--json")
    assert answer.returncode == 0, answer.stderr
    second = json.loads(answer.stdout)
    assert sum(one["rows"] for one in second["sites"].values()) > sum(one["rows"] for one in night["sites"].values())
    assert all(one["version"] == 2 for one in second["sites"].values())
    assert left_running(world.folder) == []


def test_a_night_writes_no_name_that_windows_refuses(world: World):
    assert refused_by_windows(world.folder) == []


def test_a_night_that_has_no_yesterday_is_refused(tmp_path: Path):
    answer = demo(tmp_path / "new", "--night", "2")
    assert answer.returncode == 2
    assert answer.stderr == "night 2 follows night 1, which has not been run; run that one first\n"


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("mine")
    tmp_path.chmod(0o755)
    answer = demo(tmp_path)
    assert answer.returncode == 2
    assert "holds something else" in answer.stderr
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path.stat().st_mode & 0o777, len(list(tmp_path.iterdir()))) == (0o755, 1)
