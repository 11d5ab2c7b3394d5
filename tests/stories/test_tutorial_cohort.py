"""The tutorial's commands give the tutorial's output, on the patients that it speaks of."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.flows.cli import main
from tests.places import ROOT

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

TUTORIAL = (ROOT / "docs" / "tutorial-cohort.md").read_text(encoding="utf-8")


def output_of(command: str) -> list[str]:
    """What the tutorial shows below a command."""
    after = TUTORIAL.partition(f"```\n$ {command}\n")[2]
    return after.partition("```")[0].splitlines()


def lasting(lines: list[str]) -> list[str]:
    """Lines that are the same every time: not the speed, and not what depends on the vault's key."""
    text = "\n".join(line.rstrip() for line in lines)
    text = re.sub(r"\([\d,]+ rows/s\)", "", text)
    text = re.sub(r"characteristic vector: .*?(?=a round would send)", "", text, flags=re.DOTALL)
    text = re.sub(r"^  in (training|test): .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"about [\d,]+", "about", text).splitlines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    patients = Path(os.environ.get("SPINNEY_DATA", ROOT / ".." / "shared" / "data")).resolve() / "fhir"
    if not (patients / "Observation.ndjson.gz").exists():
        pytest.skip("needs the Synthea patients; say where they are in SPINNEY_DATA")
    shutil.copytree(ROOT / "docs" / "examples" / "synthea", tmp_path, dirs_exist_ok=True)
    (tmp_path / "fhir").symlink_to(patients)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["spinney study check study.yaml", "spinney site check study.yaml"])
def test_the_tutorials_output_is_real(folder: Path, command: str) -> None:  # noqa: ARG001
    answer = CliRunner().invoke(main, command.split()[1:])
    assert answer.exit_code == 0
    shown, real = lasting(output_of(command)), lasting(answer.stdout.splitlines())
    assert [line for line in shown if "digest" not in line] == [line for line in real if "digest" not in line]


def test_site_init_says_what_the_tutorial_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = "spinney site init --name synthea --kind files --path fhir"
    assert CliRunner().invoke(main, command.split()[1:]).stdout.splitlines() == output_of(command)
