"""What has been wrong once, or could be: each of them planted in the reference changes some table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle import fhir, reference, rows
from tests.oracle.events import Event, Site, When

Plant = Callable[[pytest.MonkeyPatch], None]
FAULTS: dict[str, Plant] = {}


def fault(plant: Plant) -> Plant:
    FAULTS[plant.__name__.replace("_", " ")] = plant
    return plant


def edited(edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Plant:
    """A fault that is the same as reading other resources."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = fhir.newest
        patch.setattr(fhir, "newest", lambda found: {key: edit({**one}) for key, one in whole(found).items()})

    return plant


def unread(*names: str) -> Plant:
    return edited(lambda one: {name: value for name, value in one.items() if name not in names})


def swapped(name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(fhir, name, value)


def events(change: Callable[[list[Event]], list[Event]]) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = fhir.events_of
        patch.setattr(fhir, "events_of", lambda found, site: change(whole(found, site)))
        of_rows = rows.events_of
        patch.setattr(rows, "events_of", lambda found, site: change(of_rows(found, site)))

    return plant


def concept_cut(one: Any) -> Any:
    """Every concept in it with its first coding only."""
    if isinstance(one, dict):
        return {name: [*value[:1]] if name == "coding" else concept_cut(value) for name, value in one.items()}
    return [concept_cut(part) for part in one] if isinstance(one, list) else one


def without(column: str) -> Plant:
    """A fault that is the same as reading rows without a column."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = rows.events_of
        patch.setattr(
            rows,
            "events_of",
            lambda found, site: whole(
                {kind: [{**row, column: None} for row in some] for kind, some in found.items()}, site
            ),
        )

    return plant


def _only_first(*names: str) -> Plant:
    return edited(lambda one: {name: concept_cut(value) if name in names else value for name, value in one.items()})


def _older(resources: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The version whose date would come first as a text, whatever its offset."""
    ordered = sorted(resources, key=lambda one: one.get("meta", {}).get("lastUpdated", ""))
    return {f"{one['resourceType']}/{one['id']}": one for one in ordered}


def _all(resources: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {f"{one['resourceType']}/{one['id']}" + " " * place: one for place, one in enumerate(resources)}


@fault
def a_day_begins_at_midnight_and_is_known_then(patch: pytest.MonkeyPatch) -> None:
    read = Site.read
    patch.setattr(Site, "read", lambda site, text: When(read(site, text).first, read(site, text).first))


@fault
def a_day_is_one_of_universal_time(patch: pytest.MonkeyPatch) -> None:
    read = Site.read
    patch.setattr(
        Site, "read", lambda site, text: read(replace(site, timezone="UTC") if "T" not in text else site, text)
    )


@fault
def a_recording_time_is_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fhir, "WHEN", {kind: (times, ()) for kind, (times, _) in fhir.WHEN.items()})


@fault
def a_diagnosis_is_known_when_its_encounter_begins(patch: pytest.MonkeyPatch) -> None:
    whole = fhir._span

    def begins(one: Any, name: str, site: Site) -> Any:
        start, end = whole(one, name, site)
        return (start, start) if name in ("period", "actualPeriod") else (start, end)

    patch.setattr(fhir, "_span", begins)


@fault
def who_dies_on_a_day_dies_at_its_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference, "_after", lambda died, moment, *_: died.last > moment)


@fault
def contained_medications_are_not_read(patch: pytest.MonkeyPatch) -> None:
    unread("contained")(patch)


@fault
def medications_elsewhere_are_not_read(patch: pytest.MonkeyPatch) -> None:
    whole = fhir.newest
    patch.setattr(
        fhir,
        "newest",
        lambda found: {key: one for key, one in whole(found).items() if not key.startswith("Medication/")},
    )


@fault
def ingredients_are_not_read(patch: pytest.MonkeyPatch) -> None:
    whole = fhir._drugs
    patch.setattr(fhir, "_drugs", lambda one, name, *more: [] if name == "item" else whole(one, name, *more))


@fault
def what_will_be_has_been(patch: pytest.MonkeyPatch) -> None:
    whole = reference.table
    patch.setattr(
        reference,
        "table",
        lambda study, people, events, site, *more: whole(
            study, people, events, replace(site, now=site.now.replace(year=9000)), *more
        ),
    )


@fault
def kilograms_are_taken_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reference, "MASSES", dict.fromkeys(reference.MASSES, 1.0))


@fault
def any_answer_is_the_one(patch: pytest.MonkeyPatch) -> None:
    whole = reference.meant
    patch.setattr(reference, "meant", lambda one, by, **how: whole(one, by.model_copy(update={"answers": ()}), **how))


@fault
def an_answer_in_a_system_is_another_word(patch: pytest.MonkeyPatch) -> None:
    whole = reference.meant

    def exact(one: Event, by: Any, **how: Any) -> bool:
        return whole(one, by, **how) and (not by.answers or bool({*one.words} & {*by.answers}))

    patch.setattr(reference, "meant", exact)


FAULTS |= {
    "equal events at one time are one": events(lambda found: [*dict.fromkeys(found)]),
    "what is delivered twice counts twice": swapped("newest", _all),
    "versions are ordered by how their dates are written": swapped("newest", _older),
    "diagnoses are not dated by their encounter": edited(
        lambda one: {**one, "encounter": {}} if one["resourceType"] == "Condition" else one
    ),
    "what must not be done is done": unread("doNotPerform"),
    "a proposal is an order": swapped("WISHES", fhir.WISHES - {"proposal"}),
    "a differential diagnosis is one": swapped("NEVER", fhir.NEVER - {"differential"}),
    "only the first verification status counts": _only_first("verificationStatus"),
    "an allergy that was refuted is one": edited(
        lambda one: {**one, "verificationStatus": {}} if one["resourceType"] == "AllergyIntolerance" else one
    ),
    "what was entered in error happened": swapped("NEVER", fhir.NEVER - {"entered-in-error"}),
    "less than a limit is the limit": swapped("COMPARED", ()),
    "only the first coding of what it is counts": _only_first("code", "medicationCodeableConcept", "type"),
    "only the first coding of a value counts": _only_first("valueCodeableConcept"),
    "components are not read": unread("component"),
    "periods are not read": unread("effectivePeriod", "performedPeriod", "onsetPeriod"),
    "shapes of R5 are not read": unread("actualPeriod", "occurencePeriod", "occurenceDateTime", "medication"),
    "events without a value vanish": events(
        lambda found: [one for one in found if one.kind != "Observation" or one.number or one.words]
    ),
    "an absolute reference is another patient": edited(
        lambda one: {**one, "subject": {}} if "//" in one.get("subject", {}).get("reference", "") else one
    ),
}  # fmt: skip

OF_ROWS = {
    name: FAULTS[name]
    for name in (
        "a day begins at midnight and is known then",
        "a day is one of universal time",
        "who dies on a day dies at its end",
        "equal events at one time are one",
        "a differential diagnosis is one",
        "less than a limit is the limit",
        "what will be has been",
    )
} | {
    "a diagnosis is not dated by its encounter": without("encounter"),
    "a recording time is not asked for": without("recorded"),
    "every row is an event": without("event"),
    "old versions count as well": without("updated"),
}
