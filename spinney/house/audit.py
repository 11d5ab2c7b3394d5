"""What left this house and what came, line by line, in words for a data-protection officer.

Every line carries the hash of the line before it and its own, so a changed, removed or moved line is found. A head file
next to the log says how far it goes, so a tail that was cut off is found. A writer that was killed leaves at most half
a line: `verify` says so, and the next entry removes it and writes a line that tells of it.
Somebody who rewrites log and head together is found only by comparing with an export that is kept elsewhere
(`differences`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import Field

from spinney.base import Settings
from spinney.errors import SpinneyError
from spinney.plugins import ALGORITHMS
from spinney.storage import locks
from spinney.storage.files import room_in, write_whole

START = "0" * 64

WHAT = {
    "Invitation": "the question whether a house takes part",
    "Decline": "that a house stays out of the round, and why",
    "Description": "averages and shares per variable, the number of rows (rounded), and a public key",
    "ResumeOrder": "the question whether a house is there; what was told when the epoch opened is used again",
    "Resumed": "that a house is there, which variables there are, and a public key; nothing new about patients",
    "LendOrder": "the order to seal the trees of the epoch for houses that were away when it opened",
    "Lent": "the note that the trees of the epoch are sealed for them, the same as before",
    "GrowOrder": "the order to grow trees, and the names of the houses that they are for",
    "GrownForest": "the note that sealed trees are ready",
    "CheckOrder": "the order to check the other houses' trees",
    "Verdict": "which of the other houses' trees this house can score, and whose break a rule",
    "Manifest": "the list of the round's trees",
    "ScoreOrder": "the order to count how often each tree is right, and the public keys that hide the counts",
    "MaskedCounts": "how often each tree is right at one house, hidden so that only the sum of all houses can be read",
    "PlainCounts": "how often each tree is right at one house, readable for the trusted third party",
    "SignOrder": "the list of houses in a sum, to be confirmed",
    "Signature": "a signature under the list of houses in a sum",
    "ReleaseOrder": "the request to let one sum be opened, with all houses' signatures",
    "ReleasedSeed": "what takes one house's mask off one sum; the counts stay hidden in it",
    "RingOrder": "the order to add to sums that are passed on from house to house",
    "RingPackets": "the note that sums are ready for the next house",
    "OwnWeights": "the weights of this house's trees",
    "Weights": "the weights of the round's trees, and where the houses lie on a map; the end of the round",
    "Done": "that a house has its model, with its test figures if the study says so",
    "EnrolOrder": "the question whether a house takes part in the averages of all houses",
    "Enrolment": "the number of rows (rounded), which variables there are, and a public key",
    "FillOrder": "the order to tell averages, hidden among these houses",
    "MaskedMeans": "averages per variable, hidden so that only those over all houses can be read",
    "PlainMeans": "averages per variable (rounded), readable for the trusted third party",
    "RingMeans": "the averages per variable over all houses",
    "AddOrder": "the order to add to sums over columns, hidden among these houses",
    "FitOrder": "the order to add to a step of the common logistic regression, hidden among these houses",
    "FitResult": "what the common logistic regression came to; the end of the round",
    "MaskedReals": "sums over columns, hidden so that only those over all houses can be read",
    "PlainReals": "sums over columns, readable for the trusted third party",
    "RingReals": "sums over columns of all houses",
    "Parcel": "decision trees, sealed for other houses (in a ring sums, too): no patient",
    "Ask": "the coordinator's orders for the next step",
    "Over": "the end of a round",
    "Nonsense": "something that is no message of a round",
    "Opening": "the opening of a round",
    "Roster": "the list of the houses and their public keys",
    "Withdrawal": "that a house takes its trees back",
    "ApprovedRoster": "that this house has accepted a list of the houses",
    "Objections": "how many patients are left out because they object, and the hash of the lists that say so",
    "Permit": "that the permit of a study has ended, and what was deleted",
    "InForce": "under which list of the houses rounds run from now on",
}
IN_WORDS = {"sent": "Sent to", "received": "Received from", "refused": "Refused from", "decided": "Decided by"}


class AuditBroken(SpinneyError):
    """The log is not what was written; every place is listed."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class NoExport(SpinneyError):
    """A file that a log can't be compared with."""


class AuditEntry(Settings):
    """One thing that happened. Nothing in it is about a patient."""

    direction: Literal["sent", "received", "refused", "decided", "noted"]
    kind: str = Field(description="Kind of message, or of refusal or decision.")
    peer: str = Field("", description="The other house, or the steward.")
    study: str = ""
    round: int = 0
    step: str = ""
    bytes: int = Field(0, description="Size on the exchange.")
    digest: str = Field("", description="SHA-256 of what is on the exchange.")
    words: str = Field("", description="Instead of the usual sentence.")
    signature: str = Field("", description="Of a steward's decision.")

    def sentence(self) -> str:
        """For people."""
        if self.words:
            return self.words
        return f"{IN_WORDS.get(self.direction, 'Noted about')} {self.peer or 'everybody'}: {what_is(self.kind)}."


def what_is(kind: str) -> str:
    """A kind of message, refusal or decision in words; its name where there are none."""
    if kind in WHAT:
        return WHAT[kind]
    brought = (one for algorithm in ALGORITHMS.values() for one in algorithm.messages)
    return next((one.words for one in brought if one.kind.__name__ == kind), kind)


@dataclass(frozen=True)
class Line:
    """An entry as it is in the log: its number, its time, the hash of the line before it, and its own."""

    number: int
    time: str
    entry: AuditEntry
    before: str
    chain: str

    @classmethod
    def after(cls, head: Head, entry: AuditEntry, now: datetime) -> Line:
        """The next line."""
        time = now.astimezone(UTC).isoformat(timespec="milliseconds")
        line = cls(head.lines + 1, time, entry, head.chain, "")
        return replace(line, chain=line.hash())

    def plain(self) -> dict[str, Any]:
        return {"number": self.number, "time": self.time, **self.entry.model_dump(), "before": self.before}

    def hash(self) -> str:
        """Over everything in the line but itself."""
        return hashlib.sha256(json.dumps(self.plain()).encode()).hexdigest()

    def raw(self) -> bytes:
        return json.dumps({**self.plain(), "chain": self.chain}).encode() + b"\n"

    @classmethod
    def parsed(cls, raw: bytes) -> Line | None:
        """None for what no `append` has written."""
        try:
            plain = json.loads(raw)
            own = {name: plain.pop(name) for name in ("number", "time", "before", "chain")}
            line = cls(entry=AuditEntry.model_validate(plain), **own)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return line if line.raw() == raw and line.hash() == line.chain else None


@dataclass(frozen=True)
class Head:
    """How far the log goes for sure."""

    lines: int
    size: int
    chain: str

    def past(self, line: Line) -> Head:
        return Head(self.lines + 1, self.size + len(line.raw()), line.chain)


@dataclass(frozen=True)
class Intact:
    """A log that is what was written: how many lines, the hash of the last, and what a stopped writer left."""

    lines: int
    chain: str
    notes: tuple[str, ...]


class Audit:
    """The log in one file, with its head next to it."""

    def __init__(self, path: Path) -> None:
        self.path, self.head_path = path, path.with_suffix(".head")

    def append(self, entry: AuditEntry, now: datetime) -> None:
        """Write one line; it is on disk when this returns. Processes take turns."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        with room_in(self.path.parent), os.fdopen(handle, "r+b") as file:
            locks.take(file)
            head, half = self._end(file)
            file.seek(head.size)
            if half:
                file.truncate()
                words = f"A writer was stopped: {len(half)} bytes of an unfinished line were removed."
                digest = hashlib.sha256(half).hexdigest()
                repair = AuditEntry(direction="noted", kind="Repair", bytes=len(half), digest=digest, words=words)
                head = self._write(file, Line.after(head, repair, now), head)
            self._write(file, Line.after(head, entry.model_copy(update={"words": entry.sentence()}), now), head)

    def lines(self) -> Iterator[Line]:
        """The lines that are in order each by itself; whether all are there, `verify` says."""
        if self.path.exists():
            with self.path.open("rb") as file:
                yield from (line for line in map(Line.parsed, file) if line is not None)

    def verify(self) -> Intact:
        """AuditBroken with every place where the log is not what was written."""
        if not self.path.exists():
            if self.head_path.exists():
                raise AuditBroken([f"{self.path} is gone"])
            return Intact(0, START, ())
        with self.path.open("rb") as file:
            locks.take(file, shared=True)
            head, raws = self._head(), file.readlines()
        half = raws.pop() if raws and not raws[-1].endswith(b"\n") else b""
        lines = [Line.parsed(raw) for raw in raws]
        problems = _broken_links(lines) + self._missing_end(lines, head)
        if problems:
            raise AuditBroken(problems)
        left = f"half a line ({len(half)} bytes) at the end: its writer was stopped; the next entry will remove it"
        return Intact(len(lines), _chain_at(lines, len(lines)), (left,) if half else ())

    def _missing_end(self, lines: list[Line | None], head: Head | None) -> list[str]:
        if head is None:
            gone = f"{self.head_path} is gone or damaged: nobody can say whether lines are missing at the end"
            return [gone] if lines else []
        if len(lines) < head.lines:
            return [f"{head.lines - len(lines)} of {head.lines} lines are missing"]
        if _chain_at(lines, head.lines) != head.chain:
            return [f"line {head.lines} is not the one that the head file names"]
        return []

    def _end(self, file: BinaryIO) -> tuple[Head, bytes]:
        """Where to go on: behind the last whole line, which may be one further than the head says; and half a line."""
        head = self._head()
        if head is None:
            if file.read(1):
                raise self._broken(f"{self.head_path} is gone or damaged")
            head = Head(0, 0, START)
            self._write_head(head)  # before the first line, so that a log without a head is always a finding
        if file.seek(0, os.SEEK_END) < head.size:
            raise self._broken("lines are missing at the end")
        file.seek(head.size)
        for raw in file:
            if not raw.endswith(b"\n"):
                return head, raw
            line = Line.parsed(raw)
            if line is None or line.before != head.chain:
                raise self._broken(f"line {head.lines + 1} does not follow the one before it")
            head = head.past(line)
        return head, b""

    def _broken(self, what: str) -> AuditBroken:
        advice = f"nothing is written any more. Keep {self.path} and its head as evidence: move both away"
        return AuditBroken([f"{what}; {advice}, then a new log begins"])

    def _write(self, file: BinaryIO, line: Line, head: Head) -> Head:
        file.write(line.raw())
        file.flush()
        os.fsync(file.fileno())
        self._write_head(head := head.past(line))
        return head

    def _head(self) -> Head | None:
        try:
            plain = json.loads(self.head_path.read_bytes())
            return Head(max(0, int(plain["lines"])), max(0, int(plain["size"])), str(plain["chain"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def _write_head(self, head: Head) -> None:
        write_whole(self.head_path, json.dumps(asdict(head)).encode())


def _broken_links(lines: list[Line | None]) -> list[str]:
    problems = []
    for number, line in enumerate(lines, start=1):
        if line is None:
            problems.append(f"line {number} was changed")
        elif line.before != (_chain_at(lines, number - 1) or line.before):  # nothing can be said behind a changed line
            problems.append(f"line {number} does not follow the one before it: lines were removed, moved or put in")
    return problems


def _chain_at(lines: list[Line | None], number: int) -> str:
    """The hash of a line; of none, the start; of one that was changed, nothing."""
    if number == 0:
        return START
    line = lines[number - 1]
    return "" if line is None else line.chain


# ---------------------------------------------------------------------------------------------------------------
# For people and their spreadsheets


def exported(lines: Iterable[Line], form: Literal["csv", "json"]) -> str:
    """All lines, hashes included, so that a copy outside the house can be compared with the log later."""
    rows = [{**line.plain(), "chain": line.chain} for line in lines]
    if form == "json":
        return json.dumps(rows, indent=2) + "\n"
    text = io.StringIO()
    columns = ["number", "time", *AuditEntry.model_fields, "before", "chain"]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def differences(lines: Iterable[Line], kept: str) -> list[str]:
    """Where a log is not what it was when a copy of it was exported, as CSV or JSON; it may have grown since."""
    chains = {line.number: line.chain for line in lines}
    try:
        rows = json.loads(kept) if kept.lstrip().startswith("[") else list(csv.DictReader(io.StringIO(kept)))
        copied = {int(row["number"]): str(row["chain"]) for row in rows}
    except (ValueError, KeyError, TypeError):
        raise NoExport("this is no export of an audit log: spinney audit export writes one") from None
    if not copied:
        raise NoExport("the export has no lines: nothing can be compared with it")
    problems = {number: "is missing" if number not in chains else "is not what it was" for number in copied}
    return [f"line {number} {what}" for number, what in problems.items() if chains.get(number) != copied[number]]


def _cell(value: object) -> str:
    """A spreadsheet must not take a word for a formula."""
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
