"""What is read of a resource: all codings, values and drugs, in the words of R4 and of R5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from spinney.cohort.events import stage
from spinney.connectors.duck import open_bench
from spinney.connectors.sources import Pulled
from tests.made_up import coded, encounter, event, observation, write

RX, ATC = "rxnorm|5224", "atc|B01AB01"
HEPARIN = {"resourceType": "Medication", "id": "heparin", "code": coded(RX)}
R5_STAY = {
    "resourceType": "Encounter",
    "id": "r5",
    "status": "completed",
    "class": [coded("act|IMP"), coded("act|ACUTE")],
    "subject": {"reference": "Patient/ann"},
    "actualPeriod": {"start": "2023-01-01T10:00:00Z", "end": "2023-01-03T10:00:00Z"},
    "admission": {"dischargeDisposition": {"coding": [{"system": "d", "code": "home"}, {"system": "e", "code": "1"}]}},
}


def order(**drug: Any) -> dict[str, Any]:
    whole = event("MedicationRequest", "2023-01-01T10:00:00Z", RX, status="active", intent="order")
    del whole["medicationCodeableConcept"]
    return {**whole, **drug}


def rows(folder: Path, *resources: dict[str, Any], kind: str | None = None) -> list[dict[str, Any]]:
    """Everything that becomes of resources; of the first one's kind unless told otherwise."""
    write(folder / "in", resources)
    files = {file.stem: (file,) for file in (folder / "in").iterdir()}
    with open_bench(folder) as bench:
        staged = stage(bench, Pulled(files), folder)
    return parquet.read_table(staged.events[kind or resources[0]["resourceType"]]).sort_by("place").to_pylist()


def codes(found: list[dict[str, Any]]) -> list[str | None]:
    return sorted((row["code"] for row in found), key=str)


@pytest.mark.parametrize(
    "drug",
    [
        {"medicationCodeableConcept": coded(RX)},
        {"medicationReference": {"reference": "Medication/heparin"}},
        {"medicationReference": {"reference": "https://x.org/fhir/Medication/heparin/_history/2"}},
        {"medicationReference": {"reference": "#m"}, "contained": [HEPARIN | {"id": "m"}]},
        {"medication": {"concept": coded(RX)}},  # R5
        {"medication": {"reference": {"reference": "Medication/heparin"}}},
    ],
)
def test_a_drug_is_known_wherever_it_is_named(tmp_path: Path, drug: dict[str, Any]) -> None:
    (found,) = rows(tmp_path, order(**drug), HEPARIN)
    assert (found["code"], found["reason"]) == (RX, None)


def test_what_a_mixture_consists_of_counts_however_deep(tmp_path: Path) -> None:
    salt = {"resourceType": "Medication", "id": "salt", "code": coded(ATC), "ingredient": []}
    mix = {
        "resourceType": "Medication",
        "id": "mix",
        "code": coded("local|mix"),
        "ingredient": [
            {"itemReference": {"reference": "Medication/heparin"}},
            {"itemReference": {"reference": "Medication/mix"}},  # of itself: nobody falls into the circle
            {"itemCodeableConcept": coded("local|water")},
        ],
    }
    heparin = HEPARIN | {"ingredient": [{"itemReference": {"reference": "Medication/salt"}}]}
    found = rows(tmp_path, order(medicationReference={"reference": "Medication/mix"}), mix, heparin, salt)
    assert codes(found) == sorted(["local|mix", "local|water", RX, ATC])
    assert len({row["event"] for row in found}) == 1


def test_of_a_medication_the_newest_version_says_what_it_is(tmp_path: Path) -> None:
    old = HEPARIN | {"meta": {"lastUpdated": "2023-01-01T00:00:00Z"}, "code": coded("local|typo")}
    new = HEPARIN | {"meta": {"lastUpdated": "2023-02-01T00:00:00Z"}}
    (found,) = rows(tmp_path, order(medicationReference={"reference": "Medication/heparin"}), new, old)
    assert found["code"] == RX


def test_a_drug_that_is_not_there_is_in_quarantine(tmp_path: Path) -> None:
    (found,) = rows(tmp_path, order(medicationReference={"reference": "Medication/other"}), HEPARIN)
    assert found["reason"] == "its Medication is not there"


def test_all_codings_of_a_coded_value_are_read(tmp_path: Path) -> None:
    both = {"coding": [{"system": "lab", "code": "pos"}, {"system": "sct", "code": "10828004"}]}
    found = rows(tmp_path, observation("2023-01-01", valueCodeableConcept=both))
    assert sorted(row["text"] for row in found) == ["lab|pos", "sct|10828004"]
    assert len({row["event"] for row in found}) == 1


def test_a_bound_is_no_value(tmp_path: Path) -> None:
    below = observation("2023-01-01", valueQuantity={"value": 5, "comparator": "<", "code": "ng/L"})
    (found,) = rows(tmp_path, below)
    assert (found["value"], found["comparator"]) == (5.0, "<")


def test_every_component_is_an_event_and_every_coding_is_not(tmp_path: Path) -> None:
    both = {"coding": [{"system": "a", "code": "1"}, {"system": "b", "code": "2"}]}
    pieces = [{"code": both, "valueQuantity": {"value": number}} for number in (1, 2)]
    found = rows(tmp_path, observation("2023-01-01", component=pieces))
    assert len({row["event"] for row in found}) == 3
    assert len({row["event"] for row in found if row["value"] == 1}) == 1


def test_a_stay_of_r5_is_read_as_one_of_r4(tmp_path: Path) -> None:
    found = rows(tmp_path, R5_STAY)
    assert {row["class"] for row in found} == {"IMP", "ACUTE"}
    assert {row["discharge"] for row in found} == {"d|home", "e|1"}
    assert {(row["status"], str(row["time"]), str(row["until"])) for row in found} == {
        ("finished", "2023-01-01 10:00:00", "2023-01-03 10:00:00")
    }
    assert [row["place"] for row in found] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "resource",
    [
        {"resourceType": "Procedure", "code": coded("a|1"), "occurrenceDateTime": "2023-01-01"},
        {
            "resourceType": "MedicationAdministration",
            "medication": {"concept": coded("a|1")},
            "occurencePeriod": {"start": "2023-01-01"},
        },
        {"resourceType": "MedicationStatement", "medication": {"concept": coded("a|1")}, "dateAsserted": "2023-01-01"},
    ],
)
def test_times_of_r5_are_read(tmp_path: Path, resource: dict[str, Any]) -> None:
    (found,) = rows(tmp_path, {"id": "x", "subject": {"reference": "Patient/ann"}, **resource})
    assert (found["code"], str(found["time"]), found["reason"]) == ("a|1", "2023-01-01 00:00:00", None)


@pytest.mark.parametrize(
    "older",
    [
        event("Condition", "2023-01-01", "a|1", verificationStatus="refuted"),
        event("Condition", "2023-01-01", "a|1", assertedDate="2023-01-01"),
        event("Procedure", "2023-01-01", "a|1", notDone=True),
        order(medicationCodeableConcept=coded(RX), context={"reference": "Encounter/1"}),
        encounter("2023-01-01") | {"class": "inpatient"},
        observation("2023-01-01", 1.0, related=[{"type": "has-member"}]),
    ],
)
def test_what_is_written_in_an_older_fhir_is_refused_by_name(tmp_path: Path, older: dict[str, Any]) -> None:
    (found,) = rows(tmp_path, older)
    assert found["reason"] == "FHIR STU3 or older"
