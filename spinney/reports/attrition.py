"""The flow from the source to the rows that train, as a drawing and as a table, with nothing that rests on too few."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from spinney.cohort.attrition import Division, PartCount
from spinney.cohort.flow import Count, Span, Stage, floor_of, flow, parts_told
from spinney.cohort.pull_report import PullReport
from spinney.reports.html import Child, el, table
from spinney.reports.words import Rows
from spinney.study.study import Study

HEAD = ("step", "left out", "patients left out", "left", "patients left")
PATIENTS = "A patient is left out where the last of their index events is."
NOBODY_ELSE = "Patients who object are in no number here: they are out before anything is counted."


def attrition_parts(pulled: PullReport, division: Division | None, study: Study) -> Iterator[Element]:
    """The drawing, what to know about it, and the same as a table."""
    stages = _told(pulled, study)
    if not stages:
        yield el("p", unsaid(pulled, study))
        return
    parts = parts_told(division, floor_of(study)) if division else []
    name = f"From {stages[0].title} to the rows that train"
    drawn = el("ol", *map(_step, stages), _divided(parts) if parts else None, class_="flow", aria_label=name)
    yield el("figure", drawn, el("figcaption", " ".join(_caption(stages, division, parts))))
    shown = attrition_rows(pulled, division, study)
    same = table([one.capitalize() for one in HEAD], [[*row.values()] for row in shown], name, (1, 2, 3, 4))
    yield el("details", el("summary", "The same as a table"), same)


def attrition_rows(pulled: PullReport, division: Division | None, study: Study) -> Rows:
    """A row for every step; of rows with a known outcome that are of too few patients, one that says so."""
    stages = _told(pulled, study)
    if not stages:
        return [_row(unsaid(pulled, study))]
    rows = [_row(one.reason or one.title, one.lost, one.left, one.title) for one in stages]
    parts = parts_told(division, floor_of(study)) if division else []
    return rows + [_row(f"in {part.name}", None, _count(part)) for part in parts]


def unsaid(pulled: PullReport, study: Study) -> str:
    """Why there is no flow."""
    if pulled.attrition is None:
        return "Nobody got so far as to count index events."
    few = f"The rows with a known outcome are of fewer than {floor_of(study)} patients"
    return f"{few}, so how they came about is told in the house only: spinney site check."


def _told(pulled: PullReport, study: Study) -> list[Stage]:
    return (flow(pulled.attrition, floor_of(study)) if pulled.attrition else None) or []


def _caption(stages: list[Stage], division: Division | None, parts: list[PartCount]) -> Iterator[str]:
    yield PATIENTS
    yield NOBODY_ELSE
    losses = [one.lost for one in stages if one.lost]
    hidden = [span for lost in losses for span in (lost.events, lost.patients) if span and span.low != span.high]
    if hidden:
        yield "What is left above a number that is too small to be told is from the least to the most that it can be."
    if any(one.lost is not None and one.lost.events is None for one in stages):
        yield "Events were merged or counted again and again, so they can't be compared with index events."
    if division and not parts:
        yield "How these rows are divided is not told, because it would tell of too few patients."


def _step(stage: Stage) -> Element:
    lost: list[Child] = []
    if stage.lost is not None:
        lost = [
            el("div", class_="stem"),
            el("div", el("b", stage.reason), *_lines(stage.lost), class_="lost"),
        ]
    title = el("b", stage.title) if stage.title else None
    return el("li", *lost, el("div", title, *_lines(stage.left), class_="left"))


def _divided(parts: list[PartCount]) -> Element:
    boxes = [el("div", el("b", part.name), *_lines(_count(part)), class_="left") for part in parts]
    return el("li", *boxes, class_="parts")


def _count(part: PartCount) -> Count:
    return Count("rows", Span(part.rows, part.rows), Span(part.patients, part.patients))


def _lines(count: Count) -> Iterator[Element]:
    yield el("span", f"{count.patients} patients")
    if count.events is not None:
        yield el("span", f"{count.events} {count.unit}")


def _row(step: str, lost: Count | None = None, left: Count | None = None, title: str = "") -> dict[str, str]:
    def events(count: Count | None, unit: str = "") -> str:
        return "" if count is None or count.events is None else f"{count.events} {unit or count.unit}"

    def patients(count: Count | None) -> str:
        return "" if count is None else str(count.patients)

    unit = title if title.startswith("rows") else ""
    told = (step, events(lost), patients(lost), events(left, unit), patients(left))
    return dict(zip(HEAD, told, strict=True))
