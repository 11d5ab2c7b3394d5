"""Rows of an OMOP Common Data Model to events, written from its pages without a look at the code that is judged.

https://ohdsi.github.io/CommonDataModel/cdm54.html: a table per kind of record, dates beside datetimes that are midnight
where no time is known, a standard concept beside the source's own, and no time of recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tests.oracle.events import Event, Person, Site, When

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
TERMS = {"UCUM": "http://unitsofmeasure.org", "LOINC": "http://loinc.org", "CVX": "http://hl7.org/fhir/sid/cvx"}
TERMS |= {"ICD10": "http://hl7.org/fhir/sid/icd-10"}
VISITS = {9201: "IMP", 262: "IMP", 9203: "EMER", 9202: "AMB", 581476: "HH"}
OPERATORS = {4171756: "<", 4171754: "<=", 4172704: ">", 4171755: ">="}
GENDERS = {8507: "male", 8532: "female"}
STILL_THERE = 32220
# Kind -> tables with the stem of the concept's columns, of the beginning's, and of the end's.
PLACES: Mapping[str, tuple[tuple[str, str, str, str], ...]] = {
    "Condition": (("condition_occurrence", "condition", "condition_start", "condition_end"),),
    "Procedure": (("procedure_occurrence", "procedure", "procedure", ""),),
    "Observation": (("measurement",) * 3 + ("",), ("observation",) * 3 + ("",)),
    "MedicationRequest": (("drug_exposure", "drug", "drug_exposure_start", ""),),
    "MedicationAdministration": (("drug_exposure", "drug", "drug_exposure_start", "drug_exposure_end"),),
    "MedicationStatement": (("drug_exposure", "drug", "drug_exposure_start", "drug_exposure_end"),),
    "Immunization": (("drug_exposure", "drug", "drug_exposure_start", ""),),
    "Encounter": (("visit_occurrence", "visit", "visit_start", "visit_end"),),
}
DETAILS = ("visit_detail", "visit_detail", "visit_detail_start", "visit_detail_end")
ERA = (("drug_era", "drug", "drug_era_start", "drug_era_end"),)


@dataclass(frozen=True)
class Way:
    """How a site reads its tables."""

    midnight: str = "day"
    details: bool = False
    eras: Sequence[str] = ()
    types: Mapping[str, Sequence[int]] = field(default_factory=dict)


def events_of(tables: Tables, way: Way, site: Site) -> list[Event]:
    """Every row is an event of every kind that it is read as."""
    places = dict(PLACES) | dict.fromkeys(way.eras, ERA)
    if way.details:
        places["Encounter"] = (*places["Encounter"], DETAILS)
    return [
        event
        for kind, some in places.items()
        for place in some
        for row in tables.get(place[0], ())
        for event in _event(kind, place, row, tables, way, site)
    ]


def when(row: Row, stem: str, way: Way, site: Site) -> When | None:
    """The datetime where there is one that says more than the day."""
    day, moment = row.get(f"{stem}_date"), row.get(f"{stem}_datetime")
    if moment and (way.midnight == "moment" or not moment.endswith("00:00:00")):
        return site.read(moment)
    return site.read((day or moment)[:10]) if day or moment else None


def _concepts(tables: Tables) -> dict[int, Row]:
    return {row["concept_id"]: row for row in tables["concept"]}


def named(concept: int | None, tables: Tables) -> str | None:
    """A concept's code in the words of its vocabulary."""
    row = _concepts(tables).get(concept or 0)
    return row and f"{TERMS.get(row['vocabulary_id'], row['vocabulary_id'])}|{row['concept_code']}"


def _names(row: Row, stem: str, tables: Tables) -> Iterator[str]:
    both = [row.get(f"{stem}_concept_id"), row.get(f"{stem}_source_concept_id")]
    for concept in filter(None, both):
        yield f"omop|{concept}"
        if name := named(concept, tables):
            yield name
    if not any(both) and row.get(f"{stem}_source_value"):
        yield f"omop-source|{row[f'{stem}_source_value']}"


def _class(concept: int | None, tables: Tables) -> str | None:
    """By the visit's concept, or the nearest one above that says what it is."""
    above = [row for row in tables.get("concept_ancestor", ()) if row["descendant_concept_id"] == concept]
    known = [row for row in above if row["ancestor_concept_id"] in VISITS]
    nearest = min(known, key=lambda row: row["min_levels_of_separation"], default=None)
    if concept in VISITS:
        return VISITS[concept]
    return VISITS[nearest["ancestor_concept_id"]] if nearest else concept and f"omop|{concept}"  # type: ignore[return-value]


def _event(
    kind: str, place: tuple[str, str, str, str], row: Row, tables: Tables, way: Way, site: Site
) -> Iterator[Event]:
    table, stem, start, end = place
    time, until = when(row, start, way, site), when(row, end, way, site) if end else None
    names = frozenset(_names(row, stem, tables))
    if kind in way.types and row.get("drug_type_concept_id") not in way.types[kind]:
        return
    if kind == "Immunization" and not any(name.startswith(TERMS["CVX"]) for name in names):
        return
    if time is None:
        return
    status, classes = {"Observation": "final", "Procedure": "completed"}.get(kind), frozenset[str]()
    if kind == "Encounter":
        until = None if row.get(f"{stem}_type_concept_id") == STILL_THERE else until
        status = "finished" if until else "in-progress"
        called = _class(row.get(f"{stem}_concept_id"), tables)
        classes = frozenset({called} if called else ())
    yield Event(
        str(row["person_id"]),
        kind,
        names,
        time,
        time.last,
        until,
        status=status,
        classes=classes,
        id=f"{table}/{row[f'{table}_id']}",
        **(_value(row, tables) if kind == "Observation" else {}),
    )


def _value(row: Row, tables: Tables) -> dict[str, Any]:
    number, concept = row.get("value_as_number"), row.get("value_as_concept_id")
    unit = _concepts(tables).get(row.get("unit_concept_id") or 0)
    ucum = unit["concept_code"] if unit and unit["vocabulary_id"] == "UCUM" else None
    word = row.get("value_as_string") or (row.get("value_source_value") if number is None else None)
    if concept:
        word = named(concept, tables) or f"omop|{concept}"
    return {
        "number": number,
        "unit": ucum or row.get("unit_source_value"),
        "censored": row.get("operator_concept_id") in OPERATORS,
        "words": (word,) if word else (),
    }


def people_of(tables: Tables, way: Way, site: Site) -> dict[str, Person]:
    """Of several deaths of one person that of the first day; of one day the one that says most."""
    found = {}
    for one in tables["person"]:
        born = date(one["year_of_birth"], one.get("month_of_birth") or 1, one.get("day_of_birth") or 1)
        deaths = [row for row in tables.get("death", ()) if row["person_id"] == one["person_id"]]
        known = [moment for moment in (when(row, "death", way, site) for row in deaths) if moment]
        died = min(known, key=lambda at: (site.day(at.first), -at.first.timestamp(), not at.exact), default=None)
        sex = GENDERS.get(one.get("gender_concept_id") or 0)
        found[str(one["person_id"])] = Person(born, sex, died, bool(deaths))
    return found
