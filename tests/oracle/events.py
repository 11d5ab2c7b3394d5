"""What the reference computes with: times as they were written, events, people, and what only a site knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

NOW = datetime(2024, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class When:
    """A time as it was written: the first and the last moment that it can mean."""

    first: datetime
    last: datetime

    @property
    def exact(self) -> bool:
        return self.first == self.last


@dataclass(frozen=True)
class Event:
    """Something that happened to a patient. `words` are all codings of a value, then its text."""

    patient: str
    kind: str
    codes: frozenset[str]
    time: When
    known: datetime
    until: When | None = None
    recorded: When | None = None
    number: float | None = None
    unit: str | None = None
    censored: bool = False
    words: tuple[str, ...] = ()
    status: str | None = None
    classes: frozenset[str] = frozenset()
    happened: bool = True
    id: str = field(default="", compare=False)
    parent: str = field(default="", compare=False)
    left_to: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class Person:
    """`died` is None, too, where only `dead` is known, or a month or year."""

    birth: date | None = None
    sex: str | None = None
    died: When | None = None
    dead: bool = False


@dataclass(frozen=True)
class Site:
    """What only the site knows: its clock, its words, and until when there are data (tonight)."""

    timezone: str = "UTC"
    now: datetime = NOW
    codes: Mapping[str, str] = field(default_factory=dict)

    def read(self, text: str) -> When:
        """A year, a month, a day or an instant; raises ValueError for anything else."""
        zone = ZoneInfo(self.timezone)
        text = text.strip().replace(" ", "T")
        if "T" in text:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:  # put back, a clock shows an hour twice; the later one is known too late at worst
                moment = moment.replace(tzinfo=zone)
                moment = max(moment.replace(fold=fold).astimezone(UTC) for fold in (0, 1)) if _twice(moment) else moment
            return When(moment.astimezone(UTC), moment.astimezone(UTC))
        year, month, day = (*map(int, text.split("-")), None, None)[:3]
        first = date(year, month or 1, day or 1)
        after = date(year + 1, 1, 1)
        if day:
            after = first + DAY
        elif month:
            after = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
        return When(_midnight(first, zone), _midnight(after, zone) - TICK)

    def day(self, moment: datetime) -> date:
        return moment.astimezone(ZoneInfo(self.timezone)).date()


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _twice(moment: datetime) -> bool:
    there = {moment.replace(fold=fold).astimezone(UTC) for fold in (0, 1)}
    return len(there) == 2 and all(
        one.astimezone(moment.tzinfo).replace(tzinfo=None) == moment.replace(tzinfo=None) for one in there
    )


def death(text: str | None, site: Site) -> When | None:
    """When somebody died; a month or a year says too little."""
    return site.read(text) if text and len(text) >= len("2024-01-01") else None
