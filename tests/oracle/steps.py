"""The way from the records to the rows, one rule after the other in the order of docs/populations.md, slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spinney.study.definition import CohortDefinition, Eligibility, PatientFeature, length
from spinney.study.study import Study
from tests.oracle import groups, population, reference
from tests.oracle.events import Event, Person
from tests.oracle.population import Opening

Openings = Sequence[Opening]
Keeps = Callable[[Opening], bool]


@dataclass(frozen=True)
class Step:
    """What a rule leaves out: events, the patients whose events they are, and those of them who have none left."""

    rule: str
    events: int | None
    touched: int
    patients: int


@dataclass(frozen=True)
class Counted:
    steps: list[Step]
    rows: int
    patients: int


def counted(study: Study, read: reference.Read) -> Counted | None:
    """Every rule that the study has, and what comes out of them; None: there is no index event."""
    past = [one for one in read.events if one.time.first <= read.site.now]
    left: Openings = population.openings(study.cohort, past, reference.meant, read.site)
    if not left:
        return None
    steps = [_chosen(study, read, past, left)]
    for rule, kept in _rules(study, read, past, left):
        staying = [one for one in left if kept(one)] if callable(kept) else _firsts(left, left)
        gone = [one for one in left if not any(one is other for other in staying)]
        steps.append(Step(rule, len(gone), len(_who(gone)), len(_who(left) - _who(staying))))
        left = staying
    return Counted(steps, len(left), len(_who(left)))


def _who(openings: Openings) -> set[str]:
    return {one.patient for one in openings}


def _chosen(study: Study, read: reference.Read, past: Sequence[Event], left: Openings) -> Step:
    index, asked = study.cohort.index, reference.asked(study, past)
    people = {*read.people, *(one.patient for one in asked)}
    others = [one for one in asked if one.kind == index.kind and not any(opening.holds(one) for opening in left)]
    lost = len(people - _who(left))
    if index.merge_within or index.every:
        return Step("no index event of the study", None, 0, lost)
    return Step("no index event of the study", len(others), len({one.patient for one in others}), lost)


def _firsts(among: Openings, every: Openings) -> list[Opening]:
    """Those that belong to the first index event of their patient."""
    first = dict[str, tuple[Event, ...]]()
    for one in every:
        first.setdefault(one.patient, one.whole)
    return [one for one in among if first[one.patient] is one.whole]


def _rules(
    study: Study, read: reference.Read, past: Sequence[Event], every: Openings
) -> Iterator[tuple[str, Keeps | None]]:
    """In order, what each rule is called and whether it keeps an index event; None: it keeps the first that is left."""
    cohort, label, site = study.cohort, study.label.source, read.site
    rules, until = cohort.eligible, reference.newest(study, read.people, past, site)
    lives: dict[str, list[Event]] = {}
    for event in past:
        lives.setdefault(event.patient, []).append(event)

    def person(one: Opening) -> Person:
        return read.people.get(one.patient, Person())

    def age(one: Opening) -> int | None:
        return reference._age(person(one).birth, site.day(one.at))

    def prediction(one: Opening):
        return one.at + length(cohort.offset)

    def ripe(one: Opening) -> bool:
        return prediction(one) + length(label.horizon) <= until

    def alive(one: Opening) -> bool:
        died = person(one).died
        if not died or reference._after(died, prediction(one), cohort.index.at, site):
            return True
        within = reference._after(died, one.began.first, "start", site)
        return label.competing == "negative" and within and ripe(one)

    def outcome(one: Opening) -> int | None:
        return reference._outcome(study, one, lives[one.patient], person(one), prediction(one), site)

    def only(**rule: object) -> Keeps:
        """Whether one rule about the stay or the history is kept, as if there were no other."""
        alone: CohortDefinition = cohort.model_copy(update={"eligible": Eligibility().model_copy(update=rule)})
        return lambda one: population.broken(alone, one, lives[one.patient], prediction(one), reference.meant) is None

    def has_values(one: Opening) -> bool:
        needed = [feature for feature in study.features if feature.name in rules.values]
        assert not any(isinstance(feature.source, PatientFeature) for feature in needed)
        return all(reference._readings(feature, lives[one.patient], prediction(one), site) for feature in needed)

    if cohort.since:
        yield "before the first day of the study", lambda one: site.day(one.at) >= cohort.since
    if rules.only == "first":
        firsts = _firsts(every, every)
        yield "not the patient's first", lambda one: any(one is other for other in firsts)
    if rules.age:
        yield "age unknown", lambda one: age(one) is not None
        yield "age", lambda one: rules.age[0] <= age(one) <= rules.age[1]
    if rules.minimum_stay:
        yield f"shorter than {rules.minimum_stay}", only(minimum_stay=rules.minimum_stay)
    for group in rules.member_of:
        yield (
            f"not in {group.name}",
            lambda one, group=group: groups.is_in(group, one.patient, prediction(one), read.members, site),
        )
    if rules.observed:
        yield f"not observed for {rules.observed.at_least} before", only(observed=rules.observed)
    for rule in rules.before:
        yield f"no {rule.name} before", only(before=(rule,))
    for rule in rules.none_before:
        yield f"{rule.name} before", only(none_before=(rule,))
    if label.outcome == "death":
        yield "died, but not known when", lambda one: bool(person(one).died) or not person(one).dead
    yield "died before prediction time", alive
    yield "prediction time not reached", lambda one: prediction(one) <= until
    if rules.values:
        yield "without a value that makes eligible", has_values
    if rules.only == "first-eligible":
        yield "not the patient's first that is eligible", None
    if label.outcome != "death" and label.competing == "exclude":
        yield "died before the outcome could happen", lambda one: not ripe(one) or outcome(one) is not None
    yield "the outcome is still open", ripe
