"""FHIR queries as choices of events; what a study can't choose is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.connectors.fair4health.queries import events_of, queried_kind
from spinney.study.definition import Events

LOINC, ICD = "http://loinc.org", "http://hl7.org/fhir/sid/icd-10"


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("/Condition", {"kind": "Condition"}),
        ("Condition?subject=p1&_count=20", {"kind": "Condition"}),
        ("/Condition?code=I50", {"codes": ["*|I50"]}),
        ("/Condition?code:sw=N18,I50", {"codes": ["*|N18*", "*|I50*"]}),
        (f"/Condition?code:sw={ICD}|I50", {"codes": [f"{ICD}|I50*"]}),
        (f"/Observation?code={LOINC}|4548-4,17856-6", {"codes": [f"{LOINC}|4548-4", "*|17856-6"]}),
        (f"/Observation?code={LOINC}%7C4548-4", {"codes": [f"{LOINC}|4548-4"]}),
        (f"/Observation?code={LOINC}|", {"codes": [f"{LOINC}|*"]}),
        ("/Condition?code=|I50", {"codes": ["*|I50"]}),
        ("/Encounter?type=unplanned&class=IMP,v3|EMER", {"codes": ["*|unplanned"], "classes": ["IMP", "EMER"]}),
        ("/Condition?clinical-status=active", {"statuses": ["active"]}),
        ("/Observation?code=9&value-concept=true", {"codes": ["*|9"], "answers": ["true"]}),
        ("/Observation?value-concept=sct|1,|2", {"answers": ["sct|1", "2"]}),
    ],
)
def test_a_query_becomes_a_choice_of_events(query: str, chosen: dict[str, Any]) -> None:
    found = events_of(query, Notes())
    assert {name: found[name] for name in chosen} == chosen
    assert found.keys() == chosen.keys() | {"kind"}
    Events.model_validate(found)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("/FamilyMemberHistory", "resource type FamilyMemberHistory"),
        ("/Encounter?date=ge2010", "search parameter date=ge2010"),
        ("/Condition?code:not=I50", "search parameter code:not=I50"),
        ("/Condition?code:in=http://sets.example/a", "search parameter code:in"),
        ("/Encounter?class:sw=I", "search parameter class:sw=I"),
        ("/Condition?value-concept=true", "search parameter value-concept=true"),
        ("/Observation?class=IMP", "search parameter class=IMP"),
        ("/Condition?code=I50&code=I51", "search parameter code twice"),
        ("/Condition?code=", "nothing is no code"),
        ("/Condition?code=I5*", "is no code"),
        ("/Condition?code=I50\\,I51", "is no code"),
        ("/Observation?value-concept=sct|", "is no code"),
        ("/Condition?code=I50%1b[2J", "is no code"),
        ("//[", "is no FHIR query"),
    ],
)
def test_what_a_study_cannot_choose_is_refused_by_name(query: str, why: str) -> None:
    with pytest.raises(Untranslated) as refused:
        events_of(query, Notes())
    assert why in str(refused.value)
    assert str(refused.value).isprintable()


def test_that_a_code_has_no_system_is_said_once_and_only_if_so() -> None:
    notes = Notes()
    events_of(f"/Observation?code={LOINC}|4548-4", notes)
    assert notes.assumed == ()
    for _ in range(2):
        events_of("/Condition?code=I50", notes)
    assert len(notes.assumed) == 1
    assert "means any system" in notes.assumed[0]


def test_a_parameter_that_somebody_else_looks_at_is_passed_over() -> None:
    assert events_of("/Encounter?date=ge2010", Notes(), frozenset({"date"})) == {"kind": "Encounter"}


def test_the_resource_type_stands_before_the_question_mark() -> None:
    assert queried_kind("/Patient?gender=male") == "Patient"
