"""What counts as now where a source's dates are shifted: a day to its end, or an instant, in the site's time zone.

Only what asks whether something in the source has happened yet asks this. Audit logs, keys, schedules, retention and
the times at which scores were given keep the true clock.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from spinney.errors import SourceFailed

YEARS = range(1850, 9001)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TICK = timedelta(microseconds=1)


def _checked(written: str) -> str:
    try:
        day = date.fromisoformat(written) if _DAY.fullmatch(written) else datetime.fromisoformat(written).date()
    except ValueError:
        raise ValueError(f"{written!r} is neither a day nor an instant; write 2131-05-01 or 2131-05-01T12:00") from None
    if day.year not in YEARS:
        raise ValueError(f"{written!r}: the year lies between {YEARS[0]} and {YEARS[-1]}")
    return written


AsOf = Annotated[str, AfterValidator(_checked)]


def moment_of(written: str, timezone: str) -> datetime:
    """The last moment that is not in the future, in UTC. SourceFailed where the time zone is none."""
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise SourceFailed(f"{timezone} is no time zone; use a name such as Europe/Berlin in site.yaml") from None
    if _DAY.fullmatch(written):
        after = datetime.combine(date.fromisoformat(written) + timedelta(days=1), time(), zone)
        return after.astimezone(UTC) - _TICK
    moment = datetime.fromisoformat(written)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def clock(as_of: str | None, timezone: str, now: datetime | None = None) -> datetime:
    """What counts as now in a pull: what the site says, or else `now`, or else the true clock."""
    if as_of is not None:
        return moment_of(as_of, timezone)
    return (now or datetime.now(UTC)).astimezone(UTC)


def note_on_now(as_of: str) -> str:
    """What the notes and the report of a pull say of it."""
    return f"the source's dates are shifted: {as_of} counts as now"
