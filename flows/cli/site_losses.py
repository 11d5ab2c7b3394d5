"""What a pull found in files, what it read of each resource type, and what was lost on the way, in lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from spinney.cohort.attrition import Division, PartCount
from spinney.cohort.flow import Count, Span, flow, parts_told
from spinney.cohort.pull_report import PullReport

MOST_FILES = 20
NOT_READ, A_FOLDER = "not read: its content is unknown here", "not read: a folder in the folder; name it under path"


def file_lines(report: PullReport) -> list[str]:
    """Every file with what it holds; of very many, those that are alike are told together, the odd ones first."""
    files = report.files
    if len(files) <= MOST_FILES:
        return [f"{name}: {_held(holds, report) if name[-1:] != '/' else A_FOLDER}" for name, holds in files.items()]
    alike: dict[frozenset[str], list[str]] = {}
    for name, holds in files.items():
        alike.setdefault(frozenset(holds), []).append(name)
    lines = []
    for names in sorted(alike.values(), key=len):
        if len(names) == 1:
            lines.append(f"{names[0]}: {_held(files[names[0]], report)}")
            continue
        together: Counter[str] = Counter()
        for name in names:
            together.update(files[name])
        lines.append(f"{len(names):,} files such as {names[0]}: {_held(together, report)}")
    return lines


def _held(holds: Mapping[str, int], report: PullReport) -> str:
    kinds = [
        f"{count:,} {kind}{'' if kind in report.read else ' (not asked for)'}"
        for kind, count in sorted(holds.items())
        if kind and count
    ]
    if strange := holds.get("", 0):
        kinds.append(f"{strange:,} that are no FHIR resource")
    return ", ".join(kinds) or NOT_READ


def kind_lines(report: PullReport) -> list[str]:
    """Every resource type: how many were read, set aside because they are wrong, and not used."""
    kinds = {*report.read, *(kind for kind, _ in (*report.quarantined, *report.unused))}
    lines = []
    for kind in sorted(kinds):
        parts = [f"{report.read[kind]:,}" if kind in report.read else "not a resource type"]
        for what, counts in (("in quarantine", report.quarantined), ("not used", report.unused)):
            if words := _reasons(counts, kind):
                parts.append(f"{what}: {words}")
        lines.append(f"{kind}: {'; '.join(parts)}")
    return lines


def feature_lines(report: PullReport) -> list[str]:
    """Every feature of which something is lost: how many count, and why others don't."""
    features = dict.fromkeys(feature for feature, _ in report.lost)
    return [f"{one}: {report.found[one]:,} count; {_reasons(report.lost, one)}" for one in features]


def _reasons(counts: Mapping[tuple[str, str], int], of: str) -> str:
    found: Iterable[tuple[str, int]] = ((reason, count) for (what, reason), count in counts.items() if what == of)
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(found, key=lambda one: -one[1]))


def attrition_lines(report: PullReport, division: Division | None) -> list[str]:
    """The way from the source to the rows: what each rule leaves out, and what is left, as it is."""
    lines = []
    for stage in (flow(report.attrition) if report.attrition else None) or []:
        if stage.lost is not None:
            left = "" if stage.title else f"; left {_count(stage.left)}"
            lines.append(f"- {stage.reason}: {_count(stage.lost)}{left}")
        if stage.title:
            unit = "" if stage.title.startswith((stage.left.unit, "rows")) else f" {stage.left.unit}"
            lines.append(f"{stage.title}: {_count(stage.left, unit)}")
    return lines + [f"in {one.name}: {one.rows:,} ({one.patients:,})" for one in _parts(division)]


def attrition_data(report: PullReport, division: Division | None) -> dict[str, Any]:
    """The same for scripts."""
    steps = [
        {
            "reason": stage.reason or None,
            "left_out": _number(stage.lost.events if stage.lost else None),
            "patients_left_out": _number(stage.lost.patients if stage.lost else None),
            "title": stage.title or None,
            "left": _number(stage.left.events),
            "patients_left": _number(stage.left.patients),
        }
        for stage in (flow(report.attrition) if report.attrition else None) or []
    ]
    return {"attrition": steps, "parts": [asdict(one) for one in _parts(division)]}


def _parts(division: Division | None) -> list[PartCount]:
    return parts_told(division) if division else []


def _count(count: Count, unit: str = "") -> str:
    events = "events not compared" if count.events is None else f"{count.events}{unit}"
    return f"{events} ({count.patients})"


def _number(span: Span | None) -> int | None:
    return span.low if span else None
