"""Joining, as docs/joining.md tells it: the page's commands give the page's output."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.house.keys import KEY_VARIABLE
from tests.flows.cli.joining import done
from tests.places import ROOT

PAGE = (ROOT / "docs" / "joining.md").read_text(encoding="utf-8")


OF_THIS_RUN = re.compile(r"\d{5}(?: \d{5}){5}|\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path


def steps_of_the_page() -> Iterator[tuple[str, list[str]]]:
    """Every command in the page's console blocks, and what it shows below."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = step.rstrip("\n").split("\n")
            yield command, output


def test_the_page_on_joining_shows_what_happens(folder: Path) -> None:
    shutil.copy(ROOT / "docs/examples/synthea/study.yaml", folder)
    same: dict[str, str] = {}
    for command, shown in steps_of_the_page():
        if command.startswith("spinney "):
            real = done(command.removeprefix("spinney ")).splitlines()
        else:
            real = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout.splitlines()
        mask = [OF_THIS_RUN.sub("*", line) for line in shown]
        assert [OF_THIS_RUN.sub("*", line) for line in real] == mask, command
        for on_page, here in zip(found(shown), found(real), strict=True):
            assert same.setdefault(on_page, here) == here, f"{on_page} stands for two things: {command}"
    assert Approvals(folder / "ash/home", "acute-care").roster.sites == ["ash", "elm"]
    assert {Audit(folder / house / "home/audit.jsonl").verify().notes for house in ("oak", "ash", "beech", "elm")} == {
        ()
    }


def found(lines: list[str]) -> list[str]:
    """Keys and digests, which have to be the same wherever the page shows the same; times may differ."""
    return [one for line in lines for one in OF_THIS_RUN.findall(line) if "-" not in one]
