"""Every kind of resource becomes an event, wherever that kind keeps subject, code and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.duck import open_bench
from spinney.connectors.fhir.shapes import SHAPES
from tests.made_up import coded, encounter, event, staged


def test_conditions_that_were_refuted_say_so_in_their_status(tmp_path: Path) -> None:
    refuted = event("Condition", "2023-01-01", "sct|1", verificationStatus=coded("x|refuted"))
    result, _ = staged(tmp_path, refuted, kind="Condition")
    with open_bench(tmp_path) as bench:
        path = result.events["Condition"]
        assert bench.execute(f"SELECT status FROM read_parquet('{path}')").fetchall() == [("refuted",)]


SAMPLES = {
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


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_every_kind_of_resource_becomes_an_event(tmp_path: Path, kind: str) -> None:
    resource = {"resourceType": kind, "id": "x", "subject": {"reference": "Patient/ann"}, **SAMPLES[kind]}
    _, events = staged(tmp_path, resource, kind=kind)
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
