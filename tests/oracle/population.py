"""Which index events become rows, rule by rule, by what the reference of settings says of each.

Like the rest of the reference it is slow and plain: every index event is held against every event of its patient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from spinney.study.definition import CohortDefinition, Events, length
from tests.oracle.events import Event, Site, When

Meant = Callable[[Event, Events], bool]
NEVER = timedelta(days=999_999)


@dataclass(frozen=True)
class Opening:
    """An index event and one index time of it."""

    whole: tuple[Event, ...]
    began: When
    ended: When | None
    at: datetime

    @property
    def patient(self) -> str:
        return self.whole[0].patient

    def holds(self, event: Event) -> bool:
        """Whether it is one of those that make it; others may be equal in all that is known of them."""
        return any(one is event for one in self.whole)

    @property
    def order(self) -> tuple[datetime, datetime, timedelta]:
        """By it the first of a patient's index events is found: of several at one time the longest."""
        ended = self.ended.last - self.began.first if self.ended else NEVER
        return self.at, self.began.first, -ended


def openings(cohort: CohortDefinition, past: Sequence[Event], meant: Meant, site: Site) -> list[Opening]:
    """All index events up to tonight, each patient's in the order in which they count as first, second and so on."""
    found = []
    for one in past:
        at = one.time.first if cohort.index.at == "start" else one.until and one.until.last
        if meant(one, cohort.index) and at is not None and at <= site.now:
            found.append(Opening((one,), one.time, one.until, at))
    return sorted(found, key=lambda one: (one.patient, one.order))


def broken(
    cohort: CohortDefinition, opening: Opening, own: Sequence[Event], prediction: datetime, meant: Meant
) -> str | None:
    """The first rule about the stay or the patient's history that an index event breaks."""
    rules = cohort.eligible
    if rules.minimum_stay and _lasted(opening, prediction) < length(rules.minimum_stay):
        return "too short"
    known = [one for one in own if one.known <= prediction]
    if rules.observed:
        since = opening.at - length(rules.observed.at_least)
        if not any(meant(one, rules.observed.by) and one.time.first <= since for one in known):
            return "not observed"
    earlier = [one for one in known if one.time.first < opening.at and not opening.holds(one)]

    def had(rule: Events, within: str | None) -> bool:
        since = within and opening.at - length(within)
        return any(meant(one, rule) and (since is None or one.time.first >= since) for one in earlier)

    if not all(had(rule, rule.within) for rule in rules.before):
        return "not before"
    return "before" if any(had(rule, rule.within) for rule in rules.none_before) else None


def _lasted(opening: Opening, prediction: datetime) -> timedelta:
    """How long it had surely lasted by then."""
    until = min(opening.ended.last, prediction) if opening.ended else prediction
    return until - opening.began.last


def choices(cohort: CohortDefinition) -> list[Events]:
    """All events that the rules name."""
    rules = cohort.eligible
    return [*rules.before, *rules.none_before, *([rules.observed.by] if rules.observed else [])]
