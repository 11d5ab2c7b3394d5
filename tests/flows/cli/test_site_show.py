"""One look at a site's cohort, as people and scripts see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinney.flows.cli.site_show import PullProgress
from tests.flows.cli.stays import STUDY, resources, spinney
from tests.made_up import observation, write

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


def test_check_shows_the_cohort_and_what_would_leave(folder: Path) -> None:
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 0, answer.output
    assert "stays: 60 rows, 20 of them yes, and 0 whose outcome is still open." in answer.stdout
    row = next(line.split() for line in answer.stdout.splitlines() if line.strip().startswith("weight"))
    assert row == ["weight", "48", "12", "61", "80", "99", "kg"]
    assert "characteristic vector: age 0." in answer.stdout
    assert "a round would send (this command sends nothing):" in answer.stdout
    assert "no leaf of fewer than 5 patients" in answer.stdout
    assert (folder / "home" / "data-docs" / "stays.html").exists()


def test_check_tells_scripts_the_same(folder: Path) -> None:  # noqa: ARG001
    answer = spinney("site", "check", "study.yaml", "--json")
    found = json.loads(answer.stdout)
    assert answer.exit_code == 0
    assert found["cohort"]["rows"] == 60
    assert found["takes_part"] is True
    assert found["features"][2]["missing"] == 12
    assert set(found["vector"]) == {"age", "sex=female", "sex=male", "weight"}
    assert found["quarantine"] == []
    assert found["drift"] is None


def test_a_long_pull_tells_how_far_it_is_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in ("1", "0"):
        monkeypatch.setenv("TTY_COMPATIBLE", terminal)
        with PullProgress() as progress:
            progress("Observation", 12_000, 20_000)
        shown = capsys.readouterr().err
        assert ("Observation" in shown and "12,000 rows" in shown) is (terminal == "1")


def test_small_cells_are_not_told(folder: Path) -> None:
    (folder / "fhir" / "Observation.ndjson").unlink()
    write(folder / "fhir", [observation("2023-03-02", 60.0, who="p1")])
    found = json.loads(spinney("site", "check", "study.yaml", "--json").stdout)
    told = {key: found["features"][2][key] for key in ("filled", "missing", "minimum", "median", "maximum")}
    assert told == dict.fromkeys(told)
    assert found["vector"]["weight"] is None


def test_a_later_cohort_is_compared_with_the_one_before(folder: Path) -> None:
    assert spinney("site", "check", "study.yaml").exit_code == 0
    heavier = [
        {**one, "valueQuantity": {"value": one["valueQuantity"]["value"] + 150, "code": "kg"}}
        for one in resources()
        if "valueQuantity" in one
    ]
    (folder / "fhir" / "Observation.ndjson").unlink()
    write(folder / "fhir", heavier)
    answer = spinney("site", "check", "study.yaml")
    assert "weight: a large shift" in answer.stdout
    assert "the characteristic vector moved by" in answer.stdout


def test_a_critical_rule_is_shown_and_is_an_error(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY.replace("smallest_cohort: 10", "smallest_cohort: 50"))
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 2
    assert "critical: at least 50 patients (40 of 40 fail)" in answer.stdout
    assert "no characteristic vector:" in answer.stdout
    assert answer.stderr.startswith("at least 50 patients (40 failed)")
    scripts = spinney("site", "check", "study.yaml", "--json")
    assert scripts.exit_code == 2
    assert json.loads(scripts.stdout)["takes_part"] is False
