"""What a study wants of a source, and the small tables that tell DuckDB which event belongs to which feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from spinney.connectors.sources import Wanted
from spinney.errors import StudyInvalid
from spinney.study.codes import is_exact, written_out
from spinney.study.definition import LASTING, CohortDefinition, EventFeature, Events, LabelSource, Stay, length
from spinney.study.study import Study


def definition_of(study: Study) -> CohortDefinition:
    """The study's clinical definition; without one there are only finished tables."""
    if study.cohort is None:
        raise StudyInvalid([f"study {study.name} has no `cohort`, so its sites need finished tables"])
    return study.cohort


def event_features(study: Study) -> dict[int, EventFeature]:
    """The features that are read from events, by their place in the study."""
    return {
        place: feature.source
        for place, feature in enumerate(study.features)
        if isinstance(feature.source, EventFeature)
    }


def unit_of(study: Study, place: int) -> str | None:
    """The unit into which a feature's values are converted before its statistic; none: they stay as they are."""
    feature = study.features[place]
    source = feature.source
    if not isinstance(source, EventFeature) or source.value != "number":
        return None
    if source.unit is not None:
        return source.unit
    return None if source.statistic in ("count", "exists", "days-since") else feature.unit


def wanted_of(study: Study, codes: Mapping[str, str], until: datetime) -> list[Wanted]:
    """What to ask a source for. `codes` maps the site's codes to the study's; the answer is in the site's."""
    cohort = definition_of(study)
    asked: dict[str, list[tuple[Events, datetime | None]]] = {}
    for events, back in _needs(study, cohort):
        asked.setdefault(events.kind, []).append((events, _since(cohort, back)))
    wanted = [Wanted("Patient")]
    for kind in sorted(asked):
        starts = [since for _, since in asked[kind]]
        since = None if None in starts else min(start for start in starts if start)
        choices = [written_out(events.codes, study.pinned) for events, _ in asked[kind]]
        wanted.append(Wanted(kind, _site_codes(choices, codes), since, until))
    return wanted


def _needs(study: Study, cohort: CohortDefinition) -> Iterator[tuple[Events, timedelta | None]]:
    """Every choice of events with how far back from index time it looks; None: without end."""
    offset = length(cohort.offset)
    for source in event_features(study).values():
        yield source, None if source.window is None else max(length(source.window) - offset, timedelta())
    # an index event that counts by its end may have started long before the study's first day, and so may a first one
    index = cohort.index
    whole = index.at == "end" or cohort.eligible.only == "first" or index.merge_within or index.every
    yield index, None if whole else timedelta()
    if isinstance(index.part_of, Stay):
        yield Stay(), None  # and all that may lie between
    for rule in history_rules(cohort):
        yield rule.events, rule.oldest
    label = study.label.source
    if label is not None and label.outcome != "death":
        yield label_events(label, cohort), timedelta()


class HistoryRule(NamedTuple):
    """A look at what a record holds before index time, and why an index event becomes no row by it."""

    events: Events
    oldest: timedelta | None
    """How long before index time it may have begun at most; None: ever."""
    newest: timedelta | None
    """How long before index time it must have begun at least; None: it began before, and that is enough."""
    needed: bool
    """Whether a row needs such an event, or must have none."""
    reason: str
    lasting: bool = False
    """Whether it must not have ended before index time."""


def history_rules(cohort: CohortDefinition) -> list[HistoryRule]:
    """In the order in which they are applied."""
    rules, found = cohort.eligible, list[HistoryRule]()
    if rules.observed is not None:
        by, long = rules.observed.by, rules.observed.at_least
        found.append(HistoryRule(by, None, length(long), True, f"not observed for {long} before", by.kind == LASTING))
    for needed, some in ((True, rules.before), (False, rules.none_before)):
        for one in some:
            words = f"{one.name} before"
            oldest = None if one.within is None else length(one.within)
            found.append(HistoryRule(one, oldest, None, needed, f"no {words}" if needed else words))
    return found


def label_events(label: LabelSource, cohort: CohortDefinition) -> Events:
    """The events that make the label yes. A readmission counts from its first day, whatever its status is by now."""
    if label.events is not None:
        return label.events
    index = cohort.index
    return Events(kind=index.kind, codes=index.codes, classes=index.classes, answers=index.answers)


def has_answer(answers: str) -> str:
    """SQL condition on an event `e`: its value is one of a list. A word without a system is meant in any system."""
    return f"""list_has_any({answers}, [e."text", substr(e."text", strpos(e."text", '|') + 1)])"""


def _since(cohort: CohortDefinition, back: timedelta | None) -> datetime | None:
    if cohort.since is None or back is None:
        return None
    return datetime.combine(cohort.since, time(), UTC) - back - timedelta(days=1)  # a day for time zones


def _site_codes(choices: list[tuple[str, ...]], codes: Mapping[str, str]) -> tuple[str, ...]:
    """The codes to ask for; none, which is all, where a choice has none or some that can't be listed."""
    of_study = {code for choice in choices for code in choice}
    if not all(choices) or not all(map(is_exact, of_study)):
        return ()
    return tuple(sorted(of_study | {local for local, code in codes.items() if code in of_study}))
