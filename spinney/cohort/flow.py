"""The attrition as a flow, as it may be told: every number is made of losses that may be told, and of nothing else.

A loss that concerns fewer patients than the floor is told as such. What is left after a step is counted from below:
what comes out at the end, which the rest of a report tells anyway, and all that is lost after the step. Where one of
these losses is not told, what is left is a span, from the least to the most that it can be. So nobody can work a hidden
loss out: the flow is the same whatever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.cohort.attrition import Attrition, Division, PartCount
from spinney.cohort.losses import plural
from spinney.rows.floors import FEWEST
from spinney.study.study import Study

KNOWN = "rows with a known outcome"


@dataclass(frozen=True)
class Span:
    """A number that is told, or the least and the most that it may be; no most: nobody can say."""

    low: int
    high: int | None

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, None if self.high is None or other.high is None else self.high + other.high)

    def __str__(self) -> str:
        if self.high is None:
            return f"{self.low:,} or more"
        if self.low == self.high:
            return f"{self.low:,}"
        return f"fewer than {self.high + 1}" if self.low == 1 else f"{self.low:,} to {self.high:,}"


@dataclass(frozen=True)
class Count:
    """Events of some kind and their patients; no events: they can't be compared."""

    unit: str
    events: Span | None
    patients: Span


@dataclass(frozen=True)
class Stage:
    """A step of the flow: why something is left out, how much, and what is left."""

    reason: str
    """Empty: nothing is left out, as at the beginning."""
    lost: Count | None
    title: str
    """What is left, where it has a name of its own."""
    left: Count


def floor_of(study: Study) -> int:
    """Of fewer patients than so many nothing is told outside of a house."""
    return max(study.privacy.smallest_leaf, FEWEST)


def flow(attrition: Attrition, floor: int = 0) -> list[Stage] | None:
    """The steps, from the source to the rows whose outcome is known. No floor: as they are, for the house alone.

    None if those rows are of fewer patients than the floor: then nothing of the flow is told.
    """
    if 0 < attrition.patients < floor:
        return None
    left = [(_exactly(attrition.patients), _added(_exactly(attrition.rows)))]
    lost: list[tuple[Span, Span | None]] = []
    for loss in reversed(attrition.losses):
        lost.append((_of_patients(loss.patients, floor), _of_events(loss.events, loss.touched, floor)))
        left.append((left[-1][0] + lost[-1][0], _added(left[-1][1], lost[-1][1])))
    left, lost = left[::-1], lost[::-1]
    units, titles = _units(attrition), _titles(attrition)
    stages = [Stage("", None, titles[0], Count(units[0], left[0][1], left[0][0]))]
    for place, loss in enumerate(attrition.losses, 1):
        gone = Count(units[place - 1], lost[place - 1][1], lost[place - 1][0])
        stages.append(Stage(loss.reason, gone, titles[place], Count(units[place], left[place][1], left[place][0])))
    return stages


def _exactly(count: int) -> Span:
    return Span(count, count)


def _added(*some: Span | None) -> Span | None:
    """All together, if all can be compared."""
    known = [one for one in some if one is not None]
    return sum(known, Span(0, 0)) if len(known) == len(some) else None


def _of_patients(lost: int, floor: int) -> Span:
    return Span(1, floor - 1) if 0 < lost < floor else _exactly(lost)


def _of_events(lost: int | None, touched: int, floor: int) -> Span | None:
    """Events are told by whose they are: twelve of one patient are one patient's."""
    if lost is None:
        return None
    if not 0 < touched < floor:
        return _exactly(lost)
    return Span(1, floor - 1) if lost < floor else Span(floor, None)


def _units(attrition: Attrition) -> list[str]:
    if not attrition.source:
        return ["rows", "rows"]
    return [plural(attrition.source), *["index events"] * len(attrition.rules), "rows", "rows"]


def _titles(attrition: Attrition) -> list[str]:
    if not attrition.source:
        return ["rows of the table", KNOWN]
    return ["found in the source", "index events", *[""] * (len(attrition.rules) - 1), "rows", KNOWN]


def parts_told(division: Division, floor: int = 0) -> list[PartCount]:
    """How the rows are divided, as far as it may be told: of no group, nor of what groups have in common, so few.

    Else all parts but training are told together, and if that is not enough, no part is.
    """
    parts = [part for part in division.parts if part.rows]
    together = [part for part in (*division.parts[:1], division.aside) if part.rows]
    return next((some for some in (parts, together) if _may_be_told(some, division.patients, floor)), [])


def _may_be_told(parts: Sequence[PartCount], patients: int, floor: int) -> bool:
    """A patient is in one part; only the last one's may be in another, too, as those of the newest rows are."""
    if not parts:
        return False
    alone = patients - sum(part.patients for part in parts[:-1])
    groups = [*(part.patients for part in parts), alone, parts[-1].patients - alone]
    return not any(0 < people < floor for people in groups)
