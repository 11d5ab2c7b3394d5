"""The table that a study means, computed slowly and plainly: one index event, one feature, one event after the other.

It shares nothing with the code that it judges but the study's settings.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from spinney.study.definition import EventFeature, Events, PatientFeature, length
from spinney.study.study import Study
from tests.oracle import groups, population
from tests.oracle.events import DAY, Event, Person, Site, When

COUNTED = ("count", "exists", "days-since")


class Read(NamedTuple):
    """What a site's records hold."""

    people: Mapping[str, Person]
    events: Sequence[Event]
    site: Site
    members: Sequence[groups.Member] = ()


@dataclass(frozen=True)
class Expected:
    """Rows whose outcome is known, rows whose outcome is open, and why other index events became none."""

    ripe: list[dict[str, Any]]
    still_open: list[dict[str, Any]]
    left_out: list[str]


def meant(one: Event, by: Events, *, statuses: bool = True, codes_only: bool = False) -> bool:
    """Whether an event is one of those that the study names."""
    coded = one.happened and one.kind == by.kind and (not by.codes or bool(one.codes & {*by.codes}))
    if by.answers and not codes_only:
        coded = coded and any(word in by.answers or word.split("|", 1)[-1] in by.answers for word in one.words)
    classed = not by.classes or bool(one.classes & {*by.classes})
    return coded and (codes_only or (classed and (not by.statuses or not statuses or one.status in by.statuses)))


def table(
    study: Study,
    people: Mapping[str, Person],
    events: Sequence[Event],
    site: Site,
    members: Sequence[groups.Member] = (),
) -> Expected:
    """One row per index event, in the words of the study."""
    cohort, label = study.cohort, study.label.source
    past = [one for one in events if one.time.first <= site.now]
    newest_data = newest(study, people, past, site)
    lives: dict[str, list[Event]] = {}
    for one in past:
        lives.setdefault(one.patient, []).append(one)
    found = Expected([], [], [])
    taken = dict[str, tuple[Event, ...]]()
    for opening in population.openings(cohort, past, meant, site):
        at = opening.at
        if cohort.eligible.only == "first" and taken.setdefault(opening.patient, opening.whole) is not opening.whole:
            found.left_out.append("not the first")
            continue
        person = people.get(opening.patient, Person())
        prediction = at + length(cohort.offset)
        age = _age(person.birth, site.day(at))
        own = lives[opening.patient]
        row = {"patient": opening.patient, "index_time": at}
        seen = {}
        for feature in study.features:
            if not isinstance(feature.source, PatientFeature):
                seen[feature.name] = _readings(feature, own, prediction, site)
                row[feature.name] = _feature(feature, seen[feature.name], prediction)
            elif feature.source.patient == "age":
                row[feature.name] = age
            else:
                row[feature.name] = person.sex if person.sex in feature.categories else None
        reason = _not_eligible(cohort, seen, age, site.day(at))
        reason = reason or population.broken(cohort, opening, own, prediction, meant)
        if not all(
            groups.is_in(rule, opening.patient, prediction, members, site) for rule in cohort.eligible.member_of
        ):
            reason = reason or "not in a group"
        ripe = prediction + length(label.horizon) <= newest_data
        if person.died and not _after(person.died, prediction, cohort.index.at, site):
            within = _after(person.died, opening.began.first, "start", site)
            if not (label.competing == "negative" and within and ripe):
                reason = reason or "died before prediction time"
        if prediction > newest_data:
            reason = reason or "prediction time not reached"
        if person.dead and not person.died and label.outcome == "death":
            reason = reason or "died, but not known when"
        if reason:
            found.left_out.append(reason)
            continue
        once = cohort.eligible.only == "first-eligible"
        if once and taken.setdefault(opening.patient, opening.whole) is not opening.whole:
            found.left_out.append("not the first that is eligible")
            continue
        row[study.label.name] = outcome = _outcome(study, opening, own, person, prediction, site)
        if not ripe:
            found.still_open.append(row)
        elif outcome is None:
            found.left_out.append("died before the outcome could happen")
        else:
            found.ripe.append(row)
    return found


def asked(study: Study, past: Sequence[Event]) -> list[Event]:
    """The events that are read."""
    return [one for one in past if any(meant(one, by, codes_only=True) for by in _asked_for(study))]


def newest(study: Study, people: Mapping[str, Person], past: Sequence[Event], site: Site) -> datetime:
    """Until when the data reach."""
    said = [moment for one in asked(study, past) if one.kind != "Coverage" for moment in _told(one)]
    if study.label.source.outcome == "death":  # else they may come from a register that is ahead of the hospital
        said += [person.died.first for person in people.values() if person.died]
    return max((moment for moment in said if moment <= site.now), default=site.now)


def _told(one: Event) -> list[datetime]:
    """The moments that an event tells of; an end that is a day is told when the day is over."""
    told = [one.time.first, one.until and one.until.last, one.recorded and one.recorded.first]
    return [moment for moment in told if moment]


def _asked_for(study: Study) -> list[Events]:
    """All events that the study names; others are not read, so their times tell nothing."""
    label = study.label.source
    by = [study.cohort.index, label.events or study.cohort.index, *(feature.source for feature in study.features)]
    return [one for one in by if not isinstance(one, PatientFeature)] + population.choices(study.cohort)


def _age(birth: date | None, day: date) -> int | None:
    return birth and day.year - birth.year - ((day.month, day.day) < (birth.month, birth.day))


def _not_eligible(cohort: Any, seen: Mapping[str, list[Reading]], age: int | None, day: date) -> str | None:
    if cohort.since and day < cohort.since:
        return "before the first day of the study"
    if cohort.eligible.age and (age is None or not cohort.eligible.age[0] <= age <= cohort.eligible.age[1]):
        return "age"
    return None if all(seen[name] for name in cohort.eligible.values) else "without a value that makes eligible"


def _after(died: When, moment: datetime, at: str, site: Site) -> bool:
    """Whether somebody died after a moment; who dies on the day of an admission was alive when it began."""
    if died.exact:
        return died.first > moment
    return site.day(died.first) >= site.day(moment) if at == "start" else site.day(died.first) > site.day(moment)


def _outcome(
    study: Study, opening: population.Opening, own: Sequence[Event], person: Person, prediction: datetime, site: Site
) -> int | None:
    """1 or 0, or None: a death within the horizon came before anything else could."""
    label = study.label.source
    last = prediction + length(label.horizon)
    died, at = person.died, study.cohort.index.at
    dead = died is not None and _after(died, prediction, at, site) and not _after(died, last, "end", site)
    if label.outcome == "death":
        return int(dead)
    for one in own:
        if not prediction < one.time.first <= last or opening.holds(one):
            continue
        if label.outcome == "event":
            happened = meant(one, label.events)
        else:
            again = meant(one, study.cohort.index, statuses=False)
            happened = again and population.is_part(study.cohort, one, own, meant)
        if happened:
            return 1
    return None if dead and label.competing == "exclude" else 0


Reading = tuple[datetime, datetime, Any]


def _readings(feature: Any, own: Sequence[Event], prediction: datetime, site: Site) -> list[Reading]:
    """When each event of a feature happened and was known, and its value; oldest first, and only those with one."""
    source = feature.source
    since = prediction - length(source.window) if source.window else datetime.min.replace(tzinfo=UTC)

    def value(one: Event) -> Any:
        if source.statistic in COUNTED:
            return 1.0
        if source.value == "text":
            return _word(feature, one.words, source.meaning) if one.words else None
        return _days(one, prediction, site) if source.value == "days" else _number(one, source, feature.unit)

    seen = [one for one in own if since <= one.time.first and max(one.time.first, one.known) <= prediction]
    told = [(one.time.first, one.known, value(one)) for one in seen if meant(one, source)]
    return sorted(reading for reading in told if reading[2] is not None)


def _feature(feature: Any, readings: list[Reading], prediction: datetime) -> Any:
    """One value of one row."""
    statistic = feature.source.statistic
    if statistic == "count":
        return float(len(readings))
    if statistic == "exists":
        return float(bool(readings))
    if statistic == "days-since":
        return (prediction - readings[-1][0]) / DAY if readings else None
    value = STATISTICS[statistic](readings) if readings else None
    return value if feature.categories is None or value in feature.categories else None


def _days(one: Event, prediction: datetime, site: Site) -> float | None:
    """How long it lasted, if it is known to be over; counted in days, however long they were, where one end is one."""
    if one.until is None or one.until.last > prediction:
        return None
    if one.time.exact and one.until.exact:
        return (one.until.first - one.time.first) / DAY
    return float((site.day(one.until.first) - site.day(one.time.first)).days)


def _word(feature: Any, words: Sequence[str], meaning: Mapping[str, str]) -> str:
    """The first of the words for a value that the study knows; any other is worth no more than that it is there."""
    told = [meaning.get(word, word) for word in words]
    return next((word for word in told if word in feature.categories), told[0])


MASSES = {"kg": 1000.0, "g": 1.0, "[lb_av]": 453.59237}


def _number(one: Event, source: EventFeature, unit: str | None) -> float | None:
    """The value in the unit that the study asks for; None if it has none, or another kind of unit."""
    unit = source.unit or unit
    if one.number is None or (one.censored and source.censored == "exclude"):
        return None
    if unit is None or one.unit == unit:
        return one.number
    if one.unit in MASSES and unit in MASSES:
        return one.number * MASSES[one.unit] / MASSES[unit]
    if (one.unit, unit) == ("mmol/L", "mg/dL") and source.molar_mass:
        return one.number * source.molar_mass / 10
    return None


def _quantile(values: list[Reading], share: float) -> float:
    ranked = sorted(value for *_, value in values)
    place = share * (len(ranked) - 1)
    low = int(place)
    return ranked[low] + (place - low) * (ranked[min(low + 1, len(ranked) - 1)] - ranked[low])


def _slope(values: list[Reading]) -> float | None:
    days = [(time - values[0][0]) / DAY for time, *_ in values]
    return statistics.linear_regression(days, [value for *_, value in values]).slope if len({*days}) > 1 else None


STATISTICS: dict[str, Callable[[list[Reading]], Any]] = {
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
