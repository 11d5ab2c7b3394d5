"""FHIR resources to events, written from the pages of R4, R4B and R5 without a look at the code that is judged.

https://hl7.org/fhir/R4/datatypes.html (dates, periods, quantities), https://hl7.org/fhir/R4/references.html, and the
page of each resource type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

from tests.oracle.events import Event, Person, Site, When, death

COMPARED = ("<", "<=", ">", ">=", "ad")
# Where a type says when it happened, by preference, and when somebody wrote it down; R5 has other names for some.
WHEN = {
    "AllergyIntolerance": (("onset", "recordedDate"), ("recordedDate",)),
    "Condition": (("onset", "recordedDate"), ("recordedDate",)),
    "Coverage": (("period",), ()),
    "DiagnosticReport": (("effective",), ("issued",)),
    "Encounter": (("period", "actualPeriod"), ()),
    "Immunization": (("occurrence",), ("recorded",)),
    "MedicationAdministration": (("effective", "occurence"), ("recorded",)),
    "MedicationDispense": (("whenHandedOver", "whenPrepared"), ("recorded",)),
    "MedicationRequest": (("authoredOn",), ()),
    "MedicationStatement": (("effective", "dateAsserted"), ("dateAsserted",)),
    "Observation": (("effective",), ("issued",)),
    "Procedure": (("performed", "occurrence"), ("recorded",)),
}
# No page says that these have happened to the patient (required bindings of `status` and `verificationStatus`).
NEVER = {
    *("entered-in-error", "cancelled", "not-done", "declined", "not-taken", "refuted", "differential"),
    *("draft", "preparation", "planned", "intended", "registered"),
}
WISHES = {"proposal", "plan", "option"}  # request-intent: nobody has been told to do it


def newest(resources: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Each resource once, by type/id, in the version that was written last."""

    def written(one: Mapping[str, Any]) -> datetime:
        text = one.get("meta", {}).get("lastUpdated")
        return datetime.fromisoformat(text) if text else datetime.min.replace(tzinfo=UTC)

    return {f"{one['resourceType']}/{one['id']}": one for one in sorted(resources, key=written)}


def codings(concept: Any) -> list[str]:
    return [f"{one.get('system', '')}|{one['code']}" for one in (concept or {}).get("coding", ()) if "code" in one]


def _span(one: Mapping[str, Any], name: str, site: Site) -> tuple[When | None, When | None]:
    """When an element begins and ends; it may be a dateTime, an instant or a Period."""
    point = one.get(f"{name}DateTime") or one.get(f"{name}Instant") or one.get(name)
    period = one.get(f"{name}Period", point if isinstance(point, dict) else None)
    if period is not None:
        return tuple(site.read(period[end]) if period.get(end) else None for end in ("start", "end"))  # type: ignore[return-value]
    return (site.read(point), None) if point else (None, None)


def _drugs(one: Mapping[str, Any], name: str, there: Mapping[str, Any], around: Mapping[str, Any]) -> list[str]:
    """Codes of what is given: written out, contained, or elsewhere, with what it is made of."""
    new = one.get(name) or {}  # R5: a CodeableReference
    concept = one.get(f"{name}CodeableConcept") or new.get("concept")
    target = ((one.get(f"{name}Reference") or new.get("reference") or {}).get("reference") or "").split("/_history")[0]
    inside = {f"#{part.get('id')}": part for part in around.get("contained", ())}
    drug = inside.get(target) if target.startswith("#") else there.get("Medication/" + target.rsplit("/", 1)[-1])
    found = codings(concept)
    if drug:
        found += codings(drug.get("code"))
        for part in drug.get("ingredient", ()):
            found += _drugs(part, "item", there, around)
    return found


def _status(one: Mapping[str, Any]) -> tuple[str | None, bool]:
    verified = [word.split("|")[1] for word in codings(one.get("verificationStatus"))]
    words = [word for word in (one.get("status"), *verified) if word]
    wished = one.get("intent") in WISHES and one["resourceType"] == "MedicationRequest"
    return next(iter(words), None), not (NEVER & {*words} or one.get("doNotPerform") or wished)


def _value(one: Mapping[str, Any]) -> dict[str, Any]:
    quantity, concept = one.get("valueQuantity") or {}, one.get("valueCodeableConcept") or {}
    plain = quantity.get("value", one.get("valueInteger", one.get("valueBoolean")))
    words = (*codings(concept), *(word for word in (concept.get("text"), one.get("valueString")) if word))
    return {
        "number": None if plain is None else float(plain),
        "unit": quantity.get("code") or quantity.get("unit"),
        "censored": quantity.get("comparator") in COMPARED,
        "words": words,
    }


def events_of(resources: Iterable[Mapping[str, Any]], site: Site) -> list[Event]:
    """What happened, by resource; what can't be dated or has no patient is left out."""
    there = newest(resources)
    return list(chain.from_iterable(_events(one, there, site) for one in there.values() if one["resourceType"] in WHEN))


def _events(one: Mapping[str, Any], there: Mapping[str, Any], site: Site) -> list[Event]:
    kind = one["resourceType"]
    whose = (
        (one.get("subject") or one.get("patient") or one.get("beneficiary") or {})
        .get("reference", "")
        .split("/_history")[0]
    )
    if not whose.startswith("urn:uuid:") and "Patient" not in whose.split("/")[-2:-1]:
        return []
    elements, written = WHEN[kind]
    try:
        spans = [_span(one, name, site) for name in elements]
        time, until = next((span for span in spans if span[0]), (None, None))
        entered = [site.read(one[name]) for name in written if one.get(name)]
        known = time.last if time else None
        if until and kind in ("Observation", "DiagnosticReport"):
            known = max(known, until.last) if known else until.last
        if kind == "Condition":
            until = _span(one, "abatement", site)[0]
        if kind == "Condition" and not time:
            stay = there.get("Encounter/" + one.get("encounter", {}).get("reference", "").rsplit("/", 1)[-1], {})
            starts, ends = zip(*(_span(stay, name, site) for name in WHEN["Encounter"][0]), strict=True)
            time = next((end for end in ends if end), None)
            known = time.last if time else datetime.max.replace(tzinfo=UTC)
            time = time or next((start for start in starts if start), None)
    except ValueError:
        return []
    if not time or not known:
        return []
    if entered and entered[0].last >= time.first:  # what was written before it happened was a plan
        known = entered[0].last
    drug, code = _drugs(one, "medication", there, one), one.get("code") or one.get("vaccineCode")
    code = one.get("type") if kind == "Coverage" else code
    codes = [
        *drug,
        *codings(code),
        *chain.from_iterable(codings(what) for what in one.get("type", ()) if kind == "Encounter"),
    ]
    a_class = one.get("class") or []
    classes = (
        [a_class["code"]]
        if isinstance(a_class, dict)
        else [part["code"] for what in a_class for part in what["coding"]]
    )
    status, happened = _status(one)
    whole = Event(
        whose.removeprefix("urn:uuid:").rsplit("/", 1)[-1],
        kind,
        frozenset(site.codes.get(one, one) for one in codes),
        time,
        known,
        until,
        entered[0] if entered else None,
        status=status,
        classes=frozenset(classes),
        happened=happened,
        id=one["id"],
        parent=one.get("partOf", {}).get("reference", "").removeprefix("Encounter/") if kind == "Encounter" else "",
        left_to=frozenset(
            site.codes.get(way, way)
            for name in ("hospitalization", "admission")  # R5: admission
            for way in codings((one.get(name) or {}).get("dischargeDisposition"))
        ),
        **_value(one),
    )
    parts = [
        replace(whole, codes=frozenset(site.codes.get(c, c) for c in codings(part["code"])), **_value(part))
        for part in one.get("component", ())
    ]
    return [whole, *parts]


def people_of(resources: Iterable[Mapping[str, Any]], site: Site) -> dict[str, Person]:
    people = {}
    for one in newest(resources).values():
        if one["resourceType"] == "Patient":
            birth, died = one.get("birthDate"), one.get("deceasedDateTime")
            people[one["id"]] = Person(
                date.fromisoformat(birth) if birth else None,
                site.codes.get(one.get("gender", ""), one.get("gender")),
                death(died, site),
                bool(died) or one.get("deceasedBoolean") is True,
            )
    return people
