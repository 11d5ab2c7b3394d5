"""Which index events become rows, rule by rule, by what the reference of settings says of each.

Like the rest of the reference it is slow and plain: every index event is held against every event of its patient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
    index = cohort.index
    chosen = [one for one in past if meant(one, index) and is_part(cohort, one, past, meant)]
    found = []
    for whole in _episodes(chosen, length(index.merge_within) if index.merge_within else None):
        began = min((one.time for one in whole), key=lambda when: when.first)
        began = replace(began, last=min(one.time.last for one in whole))
        ends = [one.until for one in whole if one.until]
        ended = max(ends, key=lambda when: when.last) if len(ends) == len(whole) else None
        left_to = {way for one in whole if one.until == ended for way in one.left_to}
        if index.discharged_to and not any(_means(code, way) for code in index.discharged_to for way in left_to):
            continue
        at = began.first if index.at == "start" else ended and ended.last
        if at is not None and at <= site.now:
            found.append(Opening(tuple(whole), began, ended, at))
    found = sorted(found, key=lambda one: (one.patient, one.order))
    timed = [replace(one, at=at) for one in found for at in _index_times(cohort, one, site)]
    return [one for one in timed if _was_part(cohort, one, past, meant)]


def _episodes(chosen: Sequence[Event], gap: timedelta | None) -> list[list[Event]]:
    """Events of a patient with less than so much time between them belong together."""
    found: list[list[Event]] = []
    for one in sorted(chosen, key=lambda one: (one.patient, one.time.first)):
        last = found[-1] if found and gap is not None and found[-1][0].patient == one.patient else []
        ends = [max(other.time.first, other.until.last if other.until else other.time.first) for other in last]
        if ends and gap is not None and one.time.first - max(ends) < gap:
            last.append(one)
        else:
            found.append([one])
    return found


def _index_times(cohort: CohortDefinition, one: Opening, site: Site) -> list[datetime]:
    index = cohort.index
    if not index.every:
        return [one.at]
    last, found = min(one.at + length(index.up_to), site.now), [one.at]
    while found[-1] + length(index.every) <= last:
        found.append(found[-1] + length(index.every))
    return [at for at in found if one.ended is None or at == one.at or at < one.ended.last]


def _above(one: Event, past: Sequence[Event]) -> list[Event]:
    """The encounters of which it is a part, however deep; what was entered in error is part of nothing."""
    stays = {other.id: other for other in past if other.kind == "Encounter" and other.id and other.happened}
    found: dict[str, Event] = {}
    parent = one.parent
    while parent in stays and parent not in found:
        found[parent] = stays[parent]
        parent = stays[parent].parent
    return [*found.values()]


def is_part(cohort: CohortDefinition, one: Event, past: Sequence[Event], meant: Meant) -> bool:
    """Whether an encounter is part of what the study says, whenever that began."""
    of = cohort.index.part_of
    if of is None or one.kind != "Encounter":
        return True
    return not one.parent if of == "nothing" else any(meant(other, of) for other in _above(one, past))


def _was_part(cohort: CohortDefinition, one: Opening, past: Sequence[Event], meant: Meant) -> bool:
    """Whether that had begun by prediction time, of one of its events at least."""
    of = cohort.index.part_of
    if of is None or of == "nothing":
        return True
    prediction = one.at + length(cohort.offset)
    above = [other for part in one.whole for other in _above(part, past) if meant(other, of)]
    return any(max(other.time.first, other.known) <= prediction for other in above)


def _means(code: str, way: str) -> bool:
    """Whether a code as a study writes it means a code."""
    system, _, word = code.rpartition("|")
    its_system, _, its_word = way.partition("|")
    begins = word.endswith("*")
    same = its_word.startswith(word[:-1]) if begins else its_word == word
    return same and system in ("*", its_system)


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
        seen = [one for one in known if meant(one, rules.observed.by) and one.time.first <= since]
        if not any(one.kind != "Coverage" or lasts(one, opening.at) for one in seen):
            return "not observed"
    earlier = [one for one in known if one.time.first < opening.at and not opening.holds(one)]

    def had(rule: Events, within: str | None) -> bool:
        since = within and opening.at - length(within)
        return any(meant(one, rule) and (since is None or one.time.first >= since) for one in earlier)

    if not all(had(rule, rule.within) for rule in rules.before):
        return "not before"
    return "before" if any(had(rule, rule.within) for rule in rules.none_before) else None


def lasts(one: Event, moment: datetime) -> bool:
    """Whether it has not ended before; what ends on a day lasts until the day is over."""
    return one.until is None or one.until.last >= moment


def _lasted(opening: Opening, prediction: datetime) -> timedelta:
    """How long it had surely lasted by then."""
    until = min(opening.ended.last, prediction) if opening.ended else prediction
    return until - opening.began.last


def choices(cohort: CohortDefinition) -> list[Events]:
    """All events that the rules name."""
    rules = cohort.eligible
    whole = [Events(kind="Encounter")] if isinstance(cohort.index.part_of, Events) else []
    return [*rules.before, *rules.none_before, *([rules.observed.by] if rules.observed else []), *whole]
