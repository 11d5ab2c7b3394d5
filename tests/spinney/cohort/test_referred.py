"""Diagnoses are dated by their encounters, and what others refer to is asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spinney.cohort.referred import in_order, with_referred
from spinney.connectors.sources import Wanted
from tests.made_up import (
    RIPENER,
    STAY,
    Resource,
    encounter,
    feature,
    frame,
    observation,
    patient,
    pulled,
    study,
)

SINCE = datetime(2020, 1, 1, tzinfo=UTC)
FAILURE = "sct|84114007"
HEART = feature("heart", "count", kind="Condition", codes=[FAILURE])


def diagnosis(within: str | None, **more: Any) -> Resource:
    """A Condition as billing has it: no date of its own."""
    system, _, code = FAILURE.partition("|")
    reference = {"encounter": {"reference": f"Encounter/{within}"}} if within else {}
    return {
        "resourceType": "Condition",
        "id": f"c-{within}",
        "code": {"coding": [{"system": system, "code": code}]},
        "subject": {"reference": "Patient/ann"},
        **reference,
        **more,
    }


def test_a_diagnosis_without_a_date_has_that_of_its_encounter_and_is_known_at_its_end(tmp_path: Path) -> None:
    later = encounter("2023-02-01T10:00:00Z", "2023-02-05T10:00:00Z")
    at_admission = study(HEART, index={"kind": "Encounter", "classes": ["IMP"], "at": "start"})
    resources = [patient(), STAY, later, RIPENER, diagnosis(STAY["id"]), diagnosis(later["id"])]
    assert frame(tmp_path / "start", at_admission, resources)["heart"].tolist() == [0.0, 1.0]
    assert frame(tmp_path / "end", study(HEART), resources)["heart"].tolist() == [1.0, 2.0]


def test_a_diagnosis_of_a_stay_that_is_not_over_is_not_known_yet(tmp_path: Path) -> None:
    still = encounter("2023-01-02T10:00:00Z")
    rows = frame(tmp_path, study(HEART), [patient(), STAY, still, RIPENER, diagnosis(still["id"])])
    assert rows["heart"].tolist() == [0.0]


def test_an_encounter_that_is_asked_for_only_to_date_diagnoses_need_not_be_in_the_study(tmp_path: Path) -> None:
    visit = encounter("2022-12-01T10:00:00Z", "2022-12-01T11:00:00Z", kind="AMB")
    index = {"kind": "Observation", "codes": ["http://loinc.org|29463-7"]}
    of = study(HEART, index=index, label={"outcome": "death", "horizon": "30d"})
    resources = [patient(), visit, RIPENER, diagnosis(visit["id"]), observation("2023-01-05T10:00:00Z", 70.0)]
    late = observation("2023-12-01T10:00:00Z", 70.0)
    assert frame(tmp_path, of, [*resources, late])["heart"].tolist() == [1.0]


def test_a_diagnosis_without_date_and_encounter_is_in_quarantine_by_reason(tmp_path: Path) -> None:
    resources = [patient(), STAY, RIPENER, diagnosis(None), diagnosis("nowhere")]
    assert pulled(tmp_path, study(HEART), resources).report.quarantined == {
        ("Condition", "no date"): 1,
        ("Condition", "no date, and its encounter is not there"): 1,
    }


def test_what_refers_to_others_brings_them_whole() -> None:
    wanted = [Wanted("Encounter", ("a|1",), SINCE), Wanted("Condition", (FAILURE,), SINCE), Wanted("MedicationRequest")]
    every = {one.kind: one for one in with_referred(wanted)}
    assert (every["Encounter"].codes, every["Encounter"].since, every["Encounter"].helps) == ((), None, False)
    assert every["Medication"] == Wanted("Medication", helps=True)
    assert every["Condition"] == wanted[1]
    assert with_referred([Wanted("Condition")])[1] == Wanted("Encounter", helps=True)
    assert with_referred(wanted[:1]) == wanted[:1]


def test_what_others_refer_to_is_read_before_them() -> None:
    assert in_order(["Condition", "MedicationRequest", "Medication", "Encounter"])[:2] == ["Medication", "Encounter"]
