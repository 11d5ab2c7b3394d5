"""What people see of the demo, rendered from what came of a night."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spinney.flows.cli.demo_show import NightProgress, show
from spinney.flows.demo.night import Doing
from spinney.flows.demo.setting import World

REPORT = Path("ash", "home", "reports", "heart", "round-2.html")
FIGURE = {"value": 0.75, "low": 0.7, "high": 0.8}


def told(folder: Path, **changes: Any) -> dict[str, Any]:
    ash = {
        "data": "SQLite",
        "rows": 1200,
        "positives": 240,
        "local": {**FIGURE, "value": 0.7},
        "chosen": FIGURE,
        "gain": {"value": 0.05, "low": -0.01, "high": 0.11},
        "choice": "bofrf",
        "version": 1,
        "aliases": ["champion"],
        "verdict": {"word": "no harm", "sentence": "no harm, +0.050 (-0.010 to +0.110)"},
        "sent": {"Description": 812, "Parcel": 14_201},
    }
    few = {**ash, "local": None, "chosen": {"value": None}, "gain": None, "sent": {"Description": 640}}
    return {
        "study": "heart",
        "night": 2,
        "seconds": 61.4,
        "folder": str(folder),
        "sites": {"ash": ash, "elm": few},
        "coordinator": {},
        "reports": [str(folder / REPORT)],
        **changes,
    }


def line(said: str, word: str) -> list[str]:
    return next(one.split() for one in said.splitlines() if one.strip().startswith(word))


def test_every_hospital_has_what_it_had_what_it_has_and_the_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    show(told(tmp_path), already=False)
    said = capsys.readouterr().out
    assert line(said, "ash")[:6] == ["ash", "SQLite", "1,200", "240", "0.700", "0.750"]
    assert line(said, "ash")[6:] == ["+0.050", "(-0.01", "to", "+0.11)", "bofrf", "v1"]
    assert line(said, "elm") == ["elm", "SQLite", "1,200", "240", "too", "few", "too", "few", "bofrf", "v1"]
    assert "The night took 61 s" in said
    assert "= ash: no harm, +0.050 (-0.010 to +0.110)." in said


def test_what_left_is_told_kind_by_kind_in_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    show(told(tmp_path), already=False)
    rows = [one.split() for one in capsys.readouterr().out.splitlines()]
    assert ["812", "640"] in [row[-2:] for row in rows]
    assert ["14,201", "0"] in [row[-2:] for row in rows]


def test_a_night_that_is_done_already_says_which_is_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    show(told(tmp_path, seconds=None), already=True)
    said = capsys.readouterr().out
    assert said.startswith("night 2 is done; the next one: make demo NIGHT=3")
    assert "The night took" not in said


def test_places_are_said_as_they_can_be_typed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    show(told(tmp_path / "demo"), already=False)
    said = capsys.readouterr().out
    assert line(said, "report")[1] == str("demo" / REPORT)
    assert "audit show --home demo/ash/home" in said


def test_without_a_terminal_a_line_is_printed_whenever_something_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with NightProgress(World(tmp_path)) as progress:
        progress.tell("writing")
        for step in ("pull", "pull", "grow 100 trees"):
            progress.show({"ash": Doing(step, "RUNNING")})
        progress.show({"ash": Doing("finish", "COMPLETED")})
    shown = [one.split(" s  ", 1)[1] for one in capsys.readouterr().err.splitlines()]
    assert shown == ["writing", "ash          pull", "ash          grow 100 trees", "ash          done"]


def test_scripts_see_no_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with NightProgress(World(tmp_path), quiet=True) as progress:
        progress.tell("writing")
        progress.show({"ash": Doing("pull", "RUNNING")})
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("width", [80, 100, 118, 140])
def test_no_width_costs_a_hospital_its_name_or_its_figures(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    long = {**told(tmp_path)["sites"]["ash"], "rows": 234_567, "positives": 23_456, "data": "FHIR bulk NDJSON"}
    show(told(tmp_path, sites={"alder-hospital": long}), already=False)
    said = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    table = said.partition("what left")[0]
    for word in ("alder-hospital", "234,567", "23,456", "0.700", "0.750", "+0.050 (-0.01 to +0.11)", "bofrf v1"):
        assert word in table
    assert ("FHIR bulk NDJSON" in table) == (width > 100)
    assert max(len(line.rstrip()) for line in table.splitlines()) <= width
