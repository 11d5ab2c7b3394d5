"""Made-up patients as FHIR resources who have something of everything that a study asks for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import count

from spinney.study.definition import EventFeature, Events
from spinney.study.study import Study
from tests.made_up import Resource, coded, encounter, event, observation, patient

ADMITTED = date(2022, 3, 1)
AFTER = timedelta(days=60)
numbers = count()


def patients_for(study: Study, people: int, seed: int) -> list[Resource]:
    """People with one stay each; the sicker have more of everything, and more often what the study predicts."""
    chance = random.Random(seed)
    return [one for number in range(people) for one in _life(study, f"p{number}", chance)] + [_much_later()]


def _much_later() -> Resource:
    return encounter("2023-12-01T10:00:00Z", "2023-12-02T10:00:00Z", who="zoe", kind="AMB")


def _life(study: Study, who: str, chance: random.Random) -> Iterator[Resource]:
    sick, begun = chance.random(), ADMITTED + timedelta(days=chance.randrange(60))
    yield patient(who, f"{chance.randrange(1930, 1995)}-05-17", chance.choice(("female", "male")))
    yield encounter(f"{begun}T09:00:00Z", f"{begun + timedelta(days=5)}T15:00:00Z", who=who)
    for one in _before(study):
        if chance.random() < 0.8:
            codes = (chance.choice(one.codes),) if one.codes else ()
            yield _happened(one.model_copy(update={"codes": codes}), who, begun, sick)
    for feature in study.features:
        if isinstance(feature.source, EventFeature) and chance.random() < 0.1 + 0.7 * sick:
            yield _happened(feature.source, who, begun - timedelta(days=chance.randrange(1, 90)), 4 * sick)
    label = study.label.source
    assert label is not None
    assert label.events is not None
    if chance.random() < 0.1 + 0.7 * sick:
        yield _happened(label.events, who, begun + timedelta(days=chance.randrange(10, 25)), sick)
    elif label.events.answers:  # asked, and answered otherwise: a no
        yield _happened(label.events.model_copy(update={"answers": ("false",)}), who, begun + AFTER / 4, sick)


def _before(study: Study) -> tuple[Events, ...]:
    assert study.cohort is not None
    return study.cohort.eligible.before


def _happened(events: Events, who: str, day: date, number: float) -> Resource:
    """One such event; a prefix is more than its beginning, and any system is one of a house."""
    system, _, word = (events.codes or ("http://made-up.example|some",))[0].partition("|")
    code = f"{'http://made-up.example' if system == '*' else system}|{word.replace('*', '.9')}"
    if events.kind == "Encounter":
        kind, end = (events.classes or ("IMP",))[0], day + timedelta(days=2)
        return encounter(f"{day}T09:00:00Z", f"{end}T09:00:00Z", who=who, kind=kind, type=[coded(code)])
    if events.kind == "Observation" and events.answers:
        concept = {"coding": [{"system": "http://made-up.example", "code": events.answers[0]}]}
        return observation(f"{day}", code=code, who=who, valueCodeableConcept=concept)
    if events.kind == "Observation":
        return observation(f"{day}T08:00:00Z", round(number, 2), "1", code, who)
    if events.kind == "MedicationStatement":
        return {
            "resourceType": "MedicationStatement",
            "id": f"m{next(numbers)}",
            "status": "active",
            "medicationCodeableConcept": coded(code),
            "effectiveDateTime": f"{day}",
            "subject": {"reference": f"Patient/{who}"},
        }
    return event(events.kind, f"{day}", code, who)
