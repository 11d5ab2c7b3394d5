"""spinney audit: what people see of the log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.audit import Audit, AuditEntry
from spinney.house.keys import KEY_VARIABLE

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPINNEY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path / "home"


@pytest.fixture
def log(home: Path) -> Audit:
    audit = Audit(home / "audit.jsonl")
    for number in range(3):
        sent = AuditEntry(direction="sent", kind="Description", peer="oak", study="wood", round=number + 1, bytes=800)
        audit.append(sent, NIGHT)
    return audit


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.usefixtures("log")
def test_the_newest_entries_are_shown_one_per_line() -> None:
    lines = spinney("audit", "show", "--last", 2).output.splitlines()
    assert len(lines) == 2
    assert lines[1] == (
        "     3  2026-03-01 02:00:00  Sent to oak: averages and shares per variable, the number of rows (rounded), "
        "and a public key. [wood, round 3, 800 bytes]"
    )


def test_an_intact_log_is_said_to_be_intact(log: Audit) -> None:
    answer = spinney("audit", "verify")
    assert answer.exit_code == 0
    assert answer.output == f"3 lines, nothing changed or removed; the last has the hash {log.verify().chain[:16]}\n"
    assert json.loads(spinney("audit", "verify", "--json").output)["intact"] is True


def test_what_a_killed_writer_left_is_a_note(log: Audit) -> None:
    with log.path.open("ab") as file:
        file.write(b"{")
    answer = spinney("audit", "verify")
    assert answer.exit_code == 0
    assert "Note: half a line (1 bytes)" in answer.output


def test_a_changed_log_is_exit_code_2_and_the_line(log: Audit) -> None:
    log.path.write_bytes(log.path.read_bytes().replace(b'"round": 2', b'"round": 9'))
    answer = spinney("audit", "verify")
    assert (answer.exit_code, answer.stderr) == (2, "line 2 was changed\n")
    answer = spinney("audit", "verify", "--json")
    assert answer.exit_code == 2
    assert json.loads(answer.output) == {"intact": False, "problems": ["line 2 was changed"]}
    assert spinney("audit", "export").exit_code == 2


def test_a_log_is_compared_with_an_export_that_was_kept_elsewhere(log: Audit, tmp_path: Path) -> None:
    kept = tmp_path / "kept.csv"
    spinney("audit", "export", "-o", kept)
    assert spinney("audit", "verify", "--against", kept).exit_code == 0
    log.path.unlink()
    log.head_path.unlink()
    log.append(AuditEntry(direction="noted", kind="x", words="Nothing ever left."), NIGHT)
    assert spinney("audit", "verify").exit_code == 0
    answer = spinney("audit", "verify", "--against", kept)
    assert (answer.exit_code, answer.stderr) == (2, "line 1 is not what it was\nline 2 is missing\nline 3 is missing\n")


@pytest.mark.usefixtures("log")
def test_the_log_is_exported_to_a_file_or_to_stdout(tmp_path: Path) -> None:
    assert spinney("audit", "export").output.count("\n") == 4
    assert spinney("audit", "export", "--format", "json", "-o", tmp_path / "log.json").exit_code == 0
    assert len(json.loads((tmp_path / "log.json").read_text())) == 3


@pytest.mark.usefixtures("home")
def test_a_house_that_has_sent_nothing_says_so() -> None:
    assert "no entries" in spinney("audit", "show").stderr
    mistyped = spinney("audit", "verify")
    assert mistyped.exit_code == 2  # a wrong folder must not look like an intact log
    assert "there is no audit log" in mistyped.stderr


def test_the_newest_entries_are_there_for_scripts(log: Audit) -> None:
    shown = json.loads(spinney("audit", "show", "--last", 2, "--json").stdout)
    assert len(shown) == 2
    assert len(list(log.lines())) == 3
