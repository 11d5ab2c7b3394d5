"""Eligibility criteria as a population, and those that can't be one."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.connectors.fair4health.criteria import population_of
from spinney.connectors.fair4health.documents import Block
from spinney.connectors.fair4health.notes import Notes
from spinney.study.definition import CohortDefinition

EMERGENCY = "/Encounter?class=http://terminology.hl7.org/CodeSystem/v3-ActCode|EMER"


def criterion(query: str, line: int, path: str | None = None) -> Block:
    return Block([("fhir_query", query), ("fhir_path", path)], (line, {"fhir_query": line + 1}))


def cohort(*queries: str, of_stays: bool = False, notes: Notes | None = None) -> CohortDefinition:
    criteria = [criterion(query, 10 * number) for number, query in enumerate(queries, 1)]
    return CohortDefinition.model_validate(population_of(criteria, of_stays, notes or Notes()))


def test_without_a_criterion_a_row_is_a_patients_first_inpatient_stay() -> None:
    notes = Notes()
    found = cohort("/Patient", notes=notes)
    assert (found.index.classes, found.index.statuses, found.index.at) == (("IMP",), ("finished",), "end")
    assert found.eligible.only == "first-eligible"
    assert any(one.startswith("a row per patient") for one in notes.assumed)
    assert notes.left_out == ()


def test_where_a_variable_is_about_stays_every_stay_is_a_row() -> None:
    notes = Notes()
    assert cohort(of_stays=True, notes=notes).eligible.only == "all"
    assert not any("a row per patient" in one for one in notes.assumed)


def test_a_criterion_on_encounters_says_what_opens_a_row_and_from_when_on() -> None:
    found = cohort(f"{EMERGENCY}&date=ge2010-05")
    assert (found.index.classes, str(found.since)) == (("EMER",), "2010-05-01")
    assert str(cohort("/Encounter?date=ge2010").since) == "2010-01-01"


def test_other_criteria_are_what_must_have_happened_before_each_of_them() -> None:
    notes = Notes()
    rules = cohort("/Condition?code:sw=N18,I50", "/Observation", notes=notes).eligible.before
    assert [(one.name, one.kind, one.codes) for one in rules] == [
        ("Condition N18*, I50*", "Condition", ("*|N18*", "*|I50*")),
        ("Observation", "Observation", ()),
    ]
    assert any("FAIR4Health looks at what came later, too" in one for one in notes.assumed)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("/Patient?address-country=x", "chooses by age alone"),
        (EMERGENCY, "a second criterion on Encounter"),
        ("/Consent", "resource type Consent"),
        ("/Condition?code:not=I50", "search parameter code:not=I50"),
    ],
)
def test_what_cannot_be_a_rule_is_listed_with_its_line(query: str, why: str) -> None:
    notes = Notes()
    cohort("/Encounter?class=AMB", query, notes=notes)
    assert len(notes.left_out) == 1
    assert notes.left_out[0].startswith(f"line 21: eligibility {query}: ")
    assert why in notes.left_out[0]


@pytest.mark.parametrize("date", ["le2010", "2010", "ge2010&date=le2011", "ge2010-05-03T10:00:00Z"])
def test_a_date_that_is_no_first_day_is_listed(date: str) -> None:
    notes = Notes()
    assert cohort(f"/Encounter?class=AMB&date={date}", notes=notes).since is None
    assert "search parameter date" in notes.left_out[0]


@pytest.mark.parametrize("query", ["/Patient", "/Condition?code=I50", "/Encounter"])
def test_a_fhir_path_of_a_criterion_is_listed(query: str) -> None:
    notes = Notes()
    found: dict[str, Any] = population_of([criterion(query, 1, "satisfy:Patient.birthDate < 2000")], False, notes)
    assert "before" not in found["eligible"]
    assert "no rule for the FHIRPath satisfy:Patient.birthDate < 2000" in notes.left_out[0]
