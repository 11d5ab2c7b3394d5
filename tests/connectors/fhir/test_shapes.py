"""Every kind of resource becomes an event, wherever that kind keeps subject, code and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.duck import open_bench
from spinney.connectors.fhir.shapes import SHAPES, never_happened
from tests.made_up import coded, encounter, event, staged


def status_of(folder: Path, resource: dict[str, Any]) -> str:
    kind = resource["resourceType"]
    result, _ = staged(folder, resource, kind=kind)
    with open_bench(folder) as bench:
        rows = bench.execute(f"SELECT DISTINCT status FROM read_parquet('{result.events[kind]}')").fetchall()
    assert len(rows) == 1
    return str(rows[0][0])


def saying(*words: str) -> dict[str, Any]:
    """A concept with a coding per word."""
    return {"coding": [{"system": f"x{place}", "code": word} for place, word in enumerate(words)]}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("AllergyIntolerance", {"verificationStatus": saying("refuted")}),
        ("AllergyIntolerance", {"verificationStatus": saying("entered-in-error"), "clinicalStatus": saying("active")}),
        ("Condition", {"verificationStatus": saying("refuted"), "clinicalStatus": saying("active")}),
        ("Condition", {"verificationStatus": saying("410516002", "refuted")}),
        ("Condition", {"verificationStatus": saying("differential")}),
        ("Coverage", {"status": "cancelled"}),
        ("DiagnosticReport", {"status": "cancelled"}),
        ("Encounter", {"status": "planned"}),
        ("Immunization", {"status": "not-done"}),
        ("MedicationAdministration", {"status": "not-done"}),
        ("MedicationDispense", {"status": "declined"}),
        ("MedicationRequest", {"status": "active", "intent": "order", "doNotPerform": True}),
        ("MedicationRequest", {"status": "active", "intent": "proposal"}),
        ("MedicationRequest", {"status": "draft", "intent": "order"}),
        ("MedicationStatement", {"status": "not-taken"}),
        ("MedicationStatement", {"status": "recorded", "adherence": {"code": saying("not-taking")}}),
        ("Observation", {"status": "registered"}),
        ("Observation", {"status": "final", "dataAbsentReason": saying("not-performed")}),
        ("Procedure", {"status": "not-done"}),
    ],
)
def test_what_says_that_it_did_not_happen_does_not_count(tmp_path: Path, kind: str, said: dict[str, Any]) -> None:
    assert status_of(tmp_path, resource(kind, **said)) in never_happened(kind)


@pytest.mark.parametrize(
    ("kind", "said", "status"),
    [
        ("Condition", {"verificationStatus": saying("provisional"), "clinicalStatus": saying("active")}, "active"),
        ("MedicationRequest", {"status": "stopped", "intent": "filler-order", "doNotPerform": False}, "stopped"),
        ("Observation", {"status": "final", "dataAbsentReason": saying("unknown")}, "final"),
        ("Encounter", {"status": "in-progress"}, "in-progress"),
        ("Encounter", {"status": "completed"}, "finished"),  # R5
    ],
)
def test_what_happened_keeps_its_status(tmp_path: Path, kind: str, said: dict[str, Any], status: str) -> None:
    assert status_of(tmp_path, resource(kind, **said)) == status
    assert status not in never_happened(kind)


def test_every_rule_names_its_page_of_the_standard() -> None:
    for kind, shape in SHAPES.items():
        assert shape.page == f"https://hl7.org/fhir/R4/{kind.lower()}.html#resource"


SAMPLES = {
    "Coverage": {"beneficiary": {"reference": "Patient/ann"}, "type": coded("a|1"), "period": {"start": "2023-01-01"}},
    "AllergyIntolerance": {"patient": {"reference": "Patient/ann"}, "code": coded("a|1"), "recordedDate": "2023-01-01"},
    "DiagnosticReport": {"code": coded("a|1"), "effectiveDateTime": "2023-01-01"},
    "Encounter": {"type": [coded("a|1")], "period": {"start": "2023-01-01"}},
    "Immunization": {
        "patient": {"reference": "Patient/ann"},
        "vaccineCode": coded("a|1"),
        "occurrenceDateTime": "2023-01-01",
    },
    "MedicationAdministration": {"medicationCodeableConcept": coded("a|1"), "effectivePeriod": {"start": "2023-01-01"}},
    "MedicationDispense": {"medicationCodeableConcept": coded("a|1"), "whenHandedOver": "2023-01-01"},
    "MedicationRequest": {"medicationCodeableConcept": coded("a|1"), "authoredOn": "2023-01-01"},
    "MedicationStatement": {"medicationCodeableConcept": coded("a|1"), "effectiveDateTime": "2023-01-01"},
    "Condition": {"code": coded("a|1"), "onsetPeriod": {"start": "2023-01-01"}},
    "Observation": {"code": coded("a|1"), "effectivePeriod": {"start": "2023-01-01"}},
    "Procedure": {"code": coded("a|1"), "performedPeriod": {"start": "2023-01-01"}},
}


def resource(kind: str, **more: Any) -> dict[str, Any]:
    return {"resourceType": kind, "id": "x", "subject": {"reference": "Patient/ann"}, **SAMPLES[kind], **more}


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_every_kind_of_resource_becomes_an_event(tmp_path: Path, kind: str) -> None:
    _, events = staged(tmp_path, resource(kind), kind=kind)
    assert [(row[0], row[1], str(row[2])) for row in events] == [("ann", "a|1", "2023-01-01 00:00:00")]


def test_an_encounter_has_its_class_and_both_ends(tmp_path: Path) -> None:
    _, events = staged(tmp_path, encounter("2023-01-01T10:00:00Z", "2023-01-03T10:00:00Z"), kind="Encounter")
    assert [str(row[3]) for row in events] == ["2023-01-03 10:00:00"]


def test_an_encounter_knows_of_what_it_is_a_part_and_a_condition_its_encounter(tmp_path: Path) -> None:
    whole = encounter("2023-01-01T10:00:00Z", "2023-01-03T10:00:00Z")
    home = {"dischargeDisposition": coded("http://terminology.hl7.org/CodeSystem/discharge-disposition|home")}
    part = encounter("2023-01-01T10:00:00Z", partOf={"reference": f"Encounter/{whole['id']}"}, hospitalization=home)
    stays, _ = staged(tmp_path, whole, part, kind="Encounter")
    diagnosis = event(
        "Condition", "2023-01-01", "sct|1", encounter={"reference": f"https://x.org/Encounter/{part['id']}"}
    )
    found, _ = staged(tmp_path, diagnosis, kind="Condition")
    with open_bench(tmp_path) as bench:
        rows = bench.execute(
            f"SELECT event, parent, discharge FROM '{stays.events['Encounter']}' ORDER BY parent IS NULL"
        )
        (inner, parent, discharge), (outer, _, _) = rows.fetchall()
        (within,) = bench.execute(f"SELECT encounter FROM '{found.events['Condition']}'").fetchall()[0]
    assert (parent, within) == (outer, inner)
    assert discharge == "http://terminology.hl7.org/CodeSystem/discharge-disposition|home"
