"""What a house can show an inspector, as printable pages: study, approvals, log, what left, floors, objections."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.house.approvals import Approval
from spinney.house.audit import Intact, Line, exported, what_is
from spinney.house.roster import Roster
from spinney.reports.html import Child, bullets, el, moment, page, section, size, table
from spinney.study.study import Study

NO_TIME = (1980, 1, 1, 0, 0, 0)  # the same pack has the same bytes
SHOWN_LINES = 5000


@dataclass(frozen=True)
class Evidence:
    """What goes into a pack."""

    house: str
    at: datetime
    study: Study
    text: bytes
    """The study as it was approved."""
    approval: Approval | None
    roster: Roster | None
    lines: Sequence[Line]
    """Of the audit log, all of them."""
    verified: Intact | Sequence[str]
    """Or every place where the log is not what was written."""
    dpia: str

    @property
    def own(self) -> list[Line]:
        """Lines about this study."""
        return [line for line in self.lines if line.entry.study == self.study.name]


def evidence_files(evidence: Evidence) -> dict[str, bytes]:
    """Name -> content; the last lists the digests of the others."""
    pages = {
        "1-study.html": _study_page(evidence),
        "2-approvals.html": _approvals_page(evidence),
        "3-what-left.html": _left_page(evidence),
        "4-floors-and-objections.html": _floors_page(evidence),
        "5-log.html": _log_page(evidence),
        "6-impact-assessment.html": evidence.dpia,
    }
    files = {name: content.encode() for name, content in pages.items()}
    files["study.yaml"] = evidence.text
    files["audit.csv"] = exported(evidence.lines, "csv").encode()
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return {**files, "SHA256SUMS": sums.encode()}


def packed(files: Mapping[str, bytes]) -> bytes:
    """A zip; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, NO_TIME), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def what_left(lines: Sequence[Line]) -> dict[str, tuple[int, int, set[str]]]:
    """Kind of message -> how many were sent, their bytes, and to whom; nobody named: all may read it."""
    found: dict[str, tuple[int, int, set[str]]] = {}
    for line in lines:
        if line.entry.direction == "sent":
            number, total, peers = found.get(line.entry.kind, (0, 0, set()))
            named = {peer.strip() for peer in line.entry.peer.split(",") if peer.strip()}
            found[line.entry.kind] = (number + 1, total + line.entry.bytes, peers | named)
    return found


def _page(evidence: Evidence, title: str, *content: Child) -> str:
    where = f"{evidence.house}, study {evidence.study.name}, {moment(evidence.at)}"
    return page(title, el("p", where, class_="where"), *content)


def _study_page(evidence: Evidence) -> str:
    study = evidence.study
    facts = [
        ("version", str(study.version)),
        ("digest", study.digest),
        ("question", study.description or "not said"),
        ("purpose", study.purpose or "not said"),
        ("legal basis", study.legal_basis or "not said"),
        ("permit", str(study.permit or "not said")),
        ("outcome", study.label.name),
        ("variables", ", ".join(feature.name for feature in study.features)),
    ]
    text = evidence.text.decode("utf-8", "replace")
    return _page(
        evidence,
        f"The study {study.name}",
        table(("what", "words"), facts, "the study"),
        section("As it was approved", el("pre", text)),
    )


def _approvals_page(evidence: Evidence) -> str:
    approval, roster = evidence.approval, evidence.roster
    decided = [
        (line.time[:19].replace("T", " "), line.entry.peer, line.entry.words)
        for line in evidence.own
        if line.entry.direction == "decided"
    ]
    houses = (
        table(
            ("house", "role", "key"),
            [
                (name, "coordinator" if name == roster.coordinator else "site", prints)
                for name, prints in roster.fingerprints.items()
            ],
            "houses",
        )
        if roster
        else el("p", "No list of houses is approved here yet.")
    )
    when, who = (approval.time[:10], approval.by or "somebody unnamed") if approval else ("an unknown day", "nobody")
    said = f"Version {evidence.study.version} was approved on {when} by {who}."
    return _page(
        evidence,
        "Approvals and houses",
        el("p", said),
        section(f"Houses{f', list {roster.version}' if roster else ''}", houses),
        section("Decisions of people", table(("time (UTC)", "who", "what"), decided, "decisions")),
    )


def _left_page(evidence: Evidence) -> str:
    left = what_left(evidence.own)
    total = sum(one[1] for one in left.values())
    rows = [
        (what_is(kind), str(times), size(volume), ", ".join(sorted(peers)) or "all houses")
        for kind, (times, volume, peers) in sorted(left.items())
    ]
    number = sum(one[0] for one in left.values())
    said = f"{number} messages, {size(total)} in all; no kind of message has a field for a row or an identifier."
    head = ("what", "messages", "size", "to")
    more = "Each can be read while it is kept: spinney audit open NUMBER, with the number of its line in the log."
    return _page(evidence, "What left this house", el("p", said), table(head, rows, "what left", (1, 2)), el("p", more))


def _floors_page(evidence: Evidence) -> str:
    study = evidence.study
    floors = [
        (name.replace("_", " "), str(getattr(study.privacy, name)), field.description or "")
        for name, field in type(study.privacy).model_fields.items()
    ]
    objections = [
        (line.time[:19].replace("T", " "), line.entry.words) for line in evidence.own if line.entry.kind == "Objections"
    ]
    said = (
        table(("time (UTC)", "what was counted"), objections, "objections")
        if objections
        else el("p", "No list of patients who object was read for this study.")
    )
    rule = {
        "presumed": "All patients of the population are in but those who object, where this house keeps that.",
        "required": "Only patients who agree are in.",
    }[study.consent]
    return _page(
        evidence,
        "Floors and objections",
        section("What may leave", table(("rule", "value", "meaning"), floors, "floors")),
        section("Patients who object", el("p", rule), said),
    )


def _log_page(evidence: Evidence) -> str:
    verified = evidence.verified
    if isinstance(verified, Intact):
        said = [
            f"Verified: {verified.lines} lines, nothing changed or removed; the last has the hash {verified.chain}."
        ]
        said += [f"Note: {note}." for note in verified.notes]
    else:
        said = ["NOT what was written:", *verified]
    shown = evidence.own[-SHOWN_LINES:]
    rows = [
        (str(line.number), line.time[:19].replace("T", " "), line.entry.words, str(line.entry.round or ""))
        for line in shown
    ]
    left_out = len(evidence.own) - len(shown)
    more = f"The {left_out} lines before are in audit.csv. " if left_out else ""
    hashes = "Hashes, and lines about other studies, are in audit.csv; spinney audit verify --against compares it."
    return _page(
        evidence,
        "The log of everything that left and came",
        bullets(said),
        el("p", more + hashes),
        table(("line", "time (UTC)", "what", "round"), rows, "the log", (0, 3)),
    )
