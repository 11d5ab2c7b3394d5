"""The tutorial, typed from its first line to its last into one shell: four houses under one Prefect server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.flows.demo.prefect_server import clean_environment, free_port
from spinney.house.audit import Audit
from tests.places import ROOT
from tests.servers.left_running import left_running

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
HOUSES = ("oak", "ash", "beech", "alder")
pytestmark = [pytest.mark.service, pytest.mark.timeout(1500)]


def typed() -> list[str]:
    """Every line behind a $ in the page's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def morning(tmp_path_factory: pytest.TempPathFactory, prefect_database: Path) -> tuple[Path, str]:
    """The folder after the last line, and what the terminal showed. To every question the answer is y."""
    folder = tmp_path_factory.mktemp("try")
    (folder / "prefect").mkdir()
    shutil.copy(prefect_database, folder / "prefect/prefect.db")  # what its server would make first, in many seconds
    port = str(free_port())
    script = folder / "typed.sh"
    lines = [f"echo '$ '{line!r}\n{line}" if line.startswith("spinney") else line for line in typed()]
    script.write_text("set -e\n" + "\n".join(lines).replace("4200", port), encoding="utf-8")
    environment = clean_environment() | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
    }
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as answers:
        shell = subprocess.Popen(
            ["bash", script.name],
            cwd=folder,
            env=environment,
            stdin=answers.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            shown, _ = shell.communicate(timeout=900)
        finally:
            for one in left_running(folder):
                os.kill(int(one.split()[0]), 9)
            answers.kill()
    logs = [(folder / house / "serve.log") for house in HOUSES]
    assert shell.returncode == 0, shown + "".join(log.read_text() for log in logs if log.exists())
    return folder, shown


def test_the_night_ends_with_a_model_in_use(morning: tuple[Path, str]) -> None:
    folder, shown = morning
    nights = {house: folder / house / "home/nights/readmission/1.json" for house in HOUSES}
    assert json.loads(nights["oak"].read_text())["sites"] == ["alder", "ash", "beech"]
    assert all(json.loads(night.read_text()) for night in nights.values())
    listed = shown.partition("$ spinney model list")[2].partition("$ ")[0]
    assert "champion" in listed


def test_what_the_page_says_about_the_doctor_is_so(morning: tuple[Path, str]) -> None:
    _, shown = morning
    last = shown.rpartition("$ spinney doctor")[2]
    assert re.search(r"warning\s+rights", last), last
    assert not re.search(r"^wrong ", shown, re.MULTILINE), shown


def test_nothing_is_left_running(morning: tuple[Path, str]) -> None:
    assert left_running(morning[0]) == []


def test_every_house_s_log_is_whole(morning: tuple[Path, str]) -> None:
    assert all(Audit(morning[0] / house / "home/audit.jsonl").verify().notes == () for house in HOUSES)
