"""The table that a study means, computed slowly and plainly: one index event, one feature, one event after the other.

It shares nothing with the code that it judges but the study's settings.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from spinney.study.definition import EventFeature, Events, PatientFeature, length
from spinney.study.study import Study
from tests.oracle.events import DAY, Event, Person, Site, When


@dataclass(frozen=True)
class Expected:
    """Rows whose outcome is known, rows whose outcome is open, and why other index events became none."""

    ripe: list[dict[str, Any]]
    still_open: list[dict[str, Any]]
    left_out: list[str]


def meant(one: Event, by: Events, *, statuses: bool = True) -> bool:
    """Whether an event is one of those that the study names."""
    return (
        one.happened
        and one.kind == by.kind
        and (not by.codes or bool(one.codes & {*by.codes}))
        and (not by.classes or bool(one.classes & {*by.classes}))
        and (not by.statuses or not statuses or one.status in by.statuses)
    )


def table(study: Study, people: Mapping[str, Person], events: Sequence[Event], site: Site) -> Expected:
    """One row per index event, in the words of the study."""
    cohort, label = study.cohort, study.label.source
    past = [one for one in events if one.time.first <= site.now]
    moments = [
        moment
        for one in past
        if one.happened
        for moment in (one.time.first, one.until.first if one.until else None, one.known)
    ]
    newest_data = max((moment for moment in moments if moment and moment <= site.now), default=site.now)
    found = Expected([], [], [])
    for opening in past:
        at = opening.time if cohort.index.at == "start" else opening.until
        if not meant(opening, cohort.index) or at is None or at.first > site.now:
            continue
        person = people.get(opening.patient, Person())
        prediction = at.first + length(cohort.offset)
        age = _age(person.birth, site.day(at.first))
        own = [one for one in past if one.patient == opening.patient]
        row = {"patient": opening.patient, "index_time": at.first}
        for feature in study.features:
            source = feature.source
            if isinstance(source, PatientFeature):
                row[feature.name] = (
                    age if source.patient == "age" else person.sex if person.sex in feature.categories else None
                )
            else:
                row[feature.name] = _feature(feature, source, own, prediction)
        reason = _not_eligible(cohort, row, age, site.day(at.first))
        if person.died and not _after(person.died, prediction, site):
            reason = reason or "died before prediction time"
        if reason:
            found.left_out.append(reason)
            continue
        row[study.label.name] = outcome = _outcome(study, opening, own, person, prediction, site)
        if prediction + length(label.horizon) > newest_data:
            found.still_open.append(row)
        elif outcome is None:
            found.left_out.append("died before the outcome could happen")
        else:
            found.ripe.append(row)
    return found


def _age(birth: date | None, day: date) -> int | None:
    return birth and day.year - birth.year - ((day.month, day.day) < (birth.month, birth.day))


def _not_eligible(cohort: Any, row: Mapping[str, Any], age: int | None, day: date) -> str | None:
    if cohort.since and day < cohort.since:
        return "before the first day of the study"
    if cohort.eligible.age and (age is None or not cohort.eligible.age[0] <= age <= cohort.eligible.age[1]):
        return "age"
    wanting = [name for name in cohort.eligible.values if row[name] is None]
    return "without a value that makes eligible" if wanting else None


def _after(died: When, moment: datetime, site: Site) -> bool:
    """Whether somebody died after a moment; by day, where only the day is known."""
    return died.first > moment if died.exact else site.day(died.first) > site.day(moment)


def _outcome(
    study: Study, opening: Event, own: Sequence[Event], person: Person, prediction: datetime, site: Site
) -> int | None:
    """1 or 0, or None: a death within the horizon came before anything else could."""
    label = study.label.source
    last = prediction + length(label.horizon)
    dead = person.died is not None and _after(person.died, prediction, site) and not _after(person.died, last, site)
    if label.outcome == "death":
        return int(dead)
    by, statuses = (study.cohort.index, False) if label.outcome == "index-event" else (label.events, True)
    if any(
        one is not opening and meant(one, by, statuses=statuses) and prediction < one.time.first <= last for one in own
    ):
        return 1
    return None if dead and getattr(label, "competing", "negative") == "exclude" else 0


def _feature(feature: Any, source: EventFeature, own: Sequence[Event], prediction: datetime) -> Any:
    """One value of one row."""
    since = prediction - length(source.window) if source.window else datetime.min.replace(tzinfo=UTC)
    seen = [
        one
        for one in own
        if meant(one, source) and since <= one.time.first and max(one.time.first, one.known) <= prediction
    ]
    if source.statistic == "count":
        return float(len(seen))
    if source.statistic == "exists":
        return float(bool(seen))
    if source.statistic == "days-since":
        return min(((prediction - one.time.first) / DAY for one in seen), default=None)
    if source.value == "text":
        told = [(one.time.first, one.known, _word(feature, one.words, source.meaning)) for one in seen if one.words]
        word = (max if source.statistic == "last" else min)(told)[2] if told else None
        return word if word in feature.categories else None
    read = (_number(one, source, feature.unit) for one in seen)
    if source.value == "days":
        read = (_days(one, prediction) for one in seen)
    values = sorted(
        (one.time.first, one.known, number) for one, number in zip(seen, read, strict=True) if number is not None
    )
    return STATISTICS[source.statistic](values) if values else None


def _days(one: Event, prediction: datetime) -> float | None:
    """How long it lasted, if it is known to be over."""
    over = one.until is not None and one.until.last <= prediction
    return (one.until.first - one.time.first) / DAY if one.until and over else None


def _word(feature: Any, words: Sequence[str], meaning: Mapping[str, str]) -> str:
    """The first of the words for a value that the study knows; any other is worth no more than that it is there."""
    told = [meaning.get(word, word) for word in words]
    return next((word for word in told if word in feature.categories), told[0])


MASSES = {"kg": 1000.0, "g": 1.0, "[lb_av]": 453.59237}


def _number(one: Event, source: EventFeature, unit: str | None) -> float | None:
    """The value in the unit that the study asks for; None if it has none, or another kind of unit."""
    unit = source.unit or unit
    if one.number is None or (one.censored and getattr(source, "censored", "exclude") == "exclude"):
        return None
    if unit is None or one.unit == unit:
        return one.number
    if one.unit in MASSES and unit in MASSES:
        return one.number * MASSES[one.unit] / MASSES[unit]
    if (one.unit, unit) == ("mmol/L", "mg/dL") and source.molar_mass:
        return one.number * source.molar_mass / 10
    return None


Values = list[tuple[datetime, datetime, float]]


def _quantile(values: Values, share: float) -> float:
    ranked = sorted(value for *_, value in values)
    place = share * (len(ranked) - 1)
    low = int(place)
    return ranked[low] + (place - low) * (ranked[min(low + 1, len(ranked) - 1)] - ranked[low])


def _slope(values: Values) -> float | None:
    days = [(time - values[0][0]) / DAY for time, *_ in values]
    return statistics.linear_regression(days, [value for *_, value in values]).slope if len({*days}) > 1 else None


STATISTICS: dict[str, Callable[[Values], float | None]] = {
    "last": lambda values: values[-1][2],
    "first": lambda values: values[0][2],
    "mean": lambda values: statistics.fmean(value for *_, value in values),
    "median": lambda values: statistics.median(value for *_, value in values),
    "min": lambda values: min(value for *_, value in values),
    "max": lambda values: max(value for *_, value in values),
    "std": lambda values: statistics.stdev(value for *_, value in values) if len(values) > 1 else None,
    "delta": lambda values: values[-1][2] - values[0][2],
    "slope": _slope,
    "p10": lambda values: _quantile(values, 0.1),
    "p90": lambda values: _quantile(values, 0.9),
}
