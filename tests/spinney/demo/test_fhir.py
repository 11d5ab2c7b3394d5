"""A made-up history as FHIR resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.fhir.check import invalid_ids
from spinney.demo.history import make_history
from spinney.demo.hospitals import Hospital, make_hospitals
from spinney.demo.site import write_data

HOSPITALS = make_hospitals(4, 700, 5)


@pytest.mark.parametrize("hospital", HOSPITALS, ids=lambda one: one.name)
def test_every_resource_is_valid_fhir(tmp_path: Path, hospital: Hospital) -> None:
    write_data(make_history(hospital, 5), "fhir", tmp_path)
    files = {path.stem: [path] for path in (tmp_path / "fhir").glob("*.ndjson")}
    invalid, looked_at = invalid_ids(files, "sample", 400)
    assert invalid == {}
    assert sorted(looked_at) == ["Condition", "Encounter", "MedicationRequest", "Observation", "Patient"]
