"""The log of what left the house: what it says, and how it notices that somebody was at it."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import pytest

from spinney.house import encoding as wire
from spinney.house.audit import Audit, AuditBroken, AuditEntry, Line, NoExport, differences, exported, what_is

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
SENT = AuditEntry(direction="sent", kind="Description", peer="oak", study="wood", round=7, bytes=812, digest="d" * 64)


def entry(number: int) -> AuditEntry:
    return SENT.model_copy(update={"step": f"step{number}"})


@pytest.fixture
def log(tmp_path: Path) -> Audit:
    """Six lines of a night."""
    audit = Audit(tmp_path / "audit.jsonl")
    for number in range(6):
        audit.append(entry(number), NIGHT + timedelta(minutes=number))
    return audit


def rewritten(log: Audit, change: Callable[[list[bytes]], list[bytes]]) -> None:
    log.path.write_bytes(b"".join(change(log.path.read_bytes().splitlines(keepends=True))))


def problems(log: Audit) -> list[str]:
    with pytest.raises(AuditBroken) as broken:
        log.verify()
    return broken.value.problems


# ---------------------------------------------------------------------------------------------------------------
# What it says


def test_a_line_says_when_what_to_whom_and_how_much(log: Audit) -> None:
    first = next(log.lines())
    assert first.time == "2026-03-01T02:00:00.000+00:00"
    assert (first.number, first.entry.peer, first.entry.bytes, first.entry.digest) == (1, "oak", 812, "d" * 64)
    assert first.entry.words == (
        "Sent to oak: averages and shares per variable, the number of rows (rounded), and a public key."
    )


def test_every_kind_of_message_has_words_for_a_data_protection_officer() -> None:
    assert [kind for kind in wire.kinds() if what_is(kind) == kind] == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (AuditEntry(direction="received", kind="GrowOrder", peer="oak"), "Received from oak: the order to grow trees"),
        (AuditEntry(direction="sent", kind="Opening"), "Sent to everybody: the opening of a round."),
        (AuditEntry(direction="refused", kind="Replayed", peer="elm", words="an old message"), "an old message"),
        (AuditEntry(direction="sent", kind="SomethingNew", peer="oak"), "Sent to oak: SomethingNew."),
        (AuditEntry(direction="decided", kind="admission", peer="the steward"), "Decided by the steward: admission."),
    ],
)
def test_an_entry_reads_as_a_sentence(given: AuditEntry, words: str) -> None:
    assert given.sentence().startswith(words)


def test_times_are_kept_in_one_time_zone(tmp_path: Path) -> None:
    log = Audit(tmp_path / "audit.jsonl")
    log.append(SENT, NIGHT.astimezone(timezone(timedelta(hours=5))))
    assert next(log.lines()).time == "2026-03-01T02:00:00.000+00:00"


def test_the_log_is_kept_from_others(log: Audit) -> None:
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.head_path.stat().st_mode) == 0o600


def test_a_log_that_nobody_touched_is_intact(log: Audit) -> None:
    found = log.verify()
    assert (found.lines, found.notes) == (6, ())
    assert found.chain == list(log.lines())[-1].chain


def test_a_house_that_has_sent_nothing_has_an_intact_log(tmp_path: Path) -> None:
    log = Audit(tmp_path / "audit.jsonl")
    assert log.verify().lines == 0
    assert list(log.lines()) == []


def test_the_log_goes_on_after_a_restart(log: Audit) -> None:
    Audit(log.path).append(entry(6), NIGHT)
    assert [line.number for line in log.lines()] == [1, 2, 3, 4, 5, 6, 7]
    assert log.verify().lines == 7


# ---------------------------------------------------------------------------------------------------------------
# Somebody was at it


def test_a_changed_line_is_found(log: Audit) -> None:
    rewritten(log, lambda lines: [line.replace(b'"oak"', b'"elm"') if b"step2" in line else line for line in lines])
    assert problems(log) == ["line 3 was changed"]


def test_every_changed_byte_is_found(log: Audit) -> None:
    whole = log.path.read_bytes()
    for at in range(0, len(whole), 7):
        log.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert problems(log)


def test_a_changed_line_with_a_hash_that_fits_is_found_by_the_next(log: Audit) -> None:
    def forge(lines: list[bytes]) -> list[bytes]:
        third = Line.parsed(lines[2])
        assert third is not None
        forged = Line(third.number, third.time, entry(99), third.before, "")
        return [*lines[:2], Line(3, third.time, entry(99), third.before, forged.hash()).raw(), *lines[3:]]

    rewritten(log, forge)
    assert [problem.partition(":")[0] for problem in problems(log)] == ["line 4 does not follow the one before it"]


def test_a_changed_last_line_with_a_hash_that_fits_is_found_by_the_head(log: Audit) -> None:
    def forge(lines: list[bytes]) -> list[bytes]:
        last = Line.parsed(lines[-1])
        assert last is not None
        forged = Line(last.number, last.time, entry(99), last.before, "")
        return [*lines[:-1], Line(6, last.time, entry(99), last.before, forged.hash()).raw()]

    rewritten(log, forge)
    assert problems(log) == ["line 6 is not the one that the head file names"]


@pytest.mark.parametrize("gone", [0, 2, 4])
def test_a_removed_line_is_found(log: Audit, gone: int) -> None:
    rewritten(log, lambda lines: [*lines[:gone], *lines[gone + 1 :]])
    found = problems(log)
    assert found[0].startswith(f"line {gone + 1} does not follow")
    assert "1 of 6 lines are missing" in found


def test_lines_in_another_order_are_found(log: Audit) -> None:
    rewritten(log, lambda lines: [lines[0], lines[2], lines[1], *lines[3:]])
    assert [problem.split(":")[0] for problem in problems(log)] == [
        f"line {number} does not follow the one before it" for number in (2, 3, 4)
    ]


def test_a_line_that_was_put_in_twice_is_found(log: Audit) -> None:
    rewritten(log, lambda lines: [*lines, lines[-1]])
    assert problems(log)[0].startswith("line 7 does not follow")


@pytest.mark.parametrize("left", [0, 3, 5])
def test_a_tail_that_was_cut_off_is_found(log: Audit, left: int) -> None:
    rewritten(log, lambda lines: lines[:left])
    assert problems(log) == [f"{6 - left} of 6 lines are missing"]


def test_a_tail_that_was_cut_within_a_line_is_found(log: Audit) -> None:
    log.path.write_bytes(log.path.read_bytes()[:-10])
    assert problems(log) == ["1 of 6 lines are missing"]


def test_a_log_that_is_gone_is_found(log: Audit) -> None:
    log.path.unlink()
    assert problems(log) == [f"{log.path} is gone"]


@pytest.mark.parametrize("head", [None, b"", b"[]", b"{}"])
def test_a_head_that_is_gone_is_found(log: Audit, head: bytes | None) -> None:
    log.head_path.unlink() if head is None else log.head_path.write_bytes(head)
    assert "gone or damaged" in problems(log)[0]


@pytest.mark.parametrize("harm", ["cut", "no head", "foreign line"])
def test_nothing_is_written_behind_a_broken_end(log: Audit, harm: str) -> None:
    if harm == "cut":
        rewritten(log, lambda lines: lines[:3])
    elif harm == "no head":
        log.head_path.unlink()
    else:
        rewritten(log, lambda lines: [*lines, lines[0]])
    before = log.path.read_bytes()
    with pytest.raises(AuditBroken, match=r"Keep .* as evidence"):
        log.append(SENT, NIGHT)
    assert log.path.read_bytes() == before


# ---------------------------------------------------------------------------------------------------------------
# Writers that are killed, and writers at the same time


def test_half_a_line_of_a_killed_writer_is_reported_and_the_next_entry_repairs_it(log: Audit) -> None:
    with log.path.open("ab") as file:
        file.write(b'{"number": 7, "words": "'.ljust(2000, b"x"))
    assert log.verify().notes[0].startswith("half a line (2000 bytes) at the end")
    assert log.verify().lines == 6
    log.append(entry(6), NIGHT)
    assert [line.entry.kind for line in log.lines()][-2:] == ["Repair", "Description"]
    assert list(log.lines())[-2].entry.words == "A writer was stopped: 2000 bytes of an unfinished line were removed."
    assert (log.verify().lines, log.verify().notes) == (8, ())


def test_a_writer_killed_between_the_line_and_the_head_loses_nothing(log: Audit) -> None:
    head = log.head_path.read_bytes()
    log.append(entry(6), NIGHT)
    log.head_path.write_bytes(head)
    assert log.verify().lines == 7
    log.append(entry(7), NIGHT)
    assert log.verify().lines == 8


def test_a_writer_killed_before_its_first_line_leaves_an_intact_log(tmp_path: Path) -> None:
    log = Audit(tmp_path / "audit.jsonl")
    log.path.touch()
    assert log.verify().lines == 0
    log.append(SENT, NIGHT)
    assert log.verify().lines == 1


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from spinney.house.audit import Audit, AuditEntry
log, name, times = Audit(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(times):
    log.append(AuditEntry(direction="sent", kind="Done", peer=name, step=str(number)), datetime.now(UTC))
"""


def writer(log: Audit, name: str, times: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(log.path), name, str(times)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()


def test_two_processes_that_write_at_once_make_one_chain(tmp_path: Path) -> None:
    log = Audit(tmp_path / "audit.jsonl")
    writers = [writer(log, name, 100) for name in ("ash", "elm")]
    for process in writers:
        go(process)
    for process in writers:
        process.communicate(timeout=100)
        assert process.returncode == 0
    assert log.verify().lines == 200
    for name in ("ash", "elm"):
        assert [int(line.entry.step) for line in log.lines() if line.entry.peer == name] == list(range(100))


def test_a_writer_waits_for_its_turn(log: Audit) -> None:
    process = writer(log, "ash", 1)
    with log.path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        go(process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
    assert process.wait(timeout=60) == 0
    process.communicate()
    assert log.verify().lines == 7


def test_a_writer_that_is_killed_at_any_moment_leaves_a_log_that_can_be_verified_and_goes_on(tmp_path: Path) -> None:
    log = Audit(tmp_path / "audit.jsonl")
    log.append(SENT, NIGHT)
    for lines in (1, 5, 20):
        process = writer(log, "ash", 1_000_000)
        enough = log.path.stat().st_size + lines * 300
        go(process)
        while log.path.stat().st_size < enough:
            assert process.poll() is None
        process.kill()
        process.communicate()
        log.verify()
        log.append(entry(0), NIGHT)
        log.verify()


# ---------------------------------------------------------------------------------------------------------------
# For a spreadsheet


def test_an_export_holds_every_line_with_its_hash(log: Audit) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(log.lines(), "csv"))))
    assert [row["step"] for row in rows] == [f"step{number}" for number in range(6)]
    assert json.loads(exported(log.lines(), "json"))[5]["chain"] == log.verify().chain


@pytest.mark.parametrize("form", ["csv", "json"])
def test_an_export_kept_elsewhere_shows_that_the_whole_log_was_written_anew(
    log: Audit, tmp_path: Path, form: Literal["csv", "json"]
) -> None:
    kept = exported(log.lines(), form)
    log.append(entry(6), NIGHT)
    assert differences(log.lines(), kept) == []  # it may grow
    anew = Audit(tmp_path / "anew.jsonl")
    for number in (0, 1, 3, 4):
        anew.append(entry(number), NIGHT + timedelta(minutes=number))
    assert anew.verify().lines == 4  # which a look at the log alone can't see
    assert differences(anew.lines(), kept) == [
        "line 3 is not what it was",
        "line 4 is not what it was",
        "line 5 is missing",
        "line 6 is missing",
    ]


@pytest.mark.parametrize("text", ["", "[]", "[1]", "{}", "a,b\n1,2\n", '[{"number": "x", "chain": ""}]'])
def test_what_is_no_export_is_not_compared_with(log: Audit, text: str) -> None:
    with pytest.raises(NoExport):
        differences(log.lines(), text)


def test_a_spreadsheet_does_not_take_words_for_a_formula(tmp_path: Path) -> None:
    log = Audit(tmp_path / "audit.jsonl")
    log.append(AuditEntry(direction="noted", kind="x", words='=HYPERLINK("http://elsewhere")'), NIGHT)
    row = next(csv.DictReader(io.StringIO(exported(log.lines(), "csv"))))
    assert row["words"].startswith("'=")
