"""Resources that are no valid FHIR are found, and what can't be read stops nobody."""

from __future__ import annotations

import json
from pathlib import Path

from spinney.connectors.fhir.check import invalid_ids


def test_an_id_that_is_no_text_and_nesting_without_end_are_no_valid_resources(tmp_path: Path) -> None:
    path = tmp_path / "Observation.ndjson"
    path.write_text("[" * 20_000 + "]" * 20_000 + '\n{"resourceType": "Observation", "id": "\\ud800"}\n')
    assert invalid_ids({"Observation": (path,)}, "all", 10) == ({}, {"Observation": 2})


def test_what_is_valid_in_r5_only_is_valid(tmp_path: Path) -> None:
    stay = {"resourceType": "Encounter", "id": "x", "status": "completed", "actualPeriod": {"start": "2023-01-01"}}
    path = tmp_path / "Encounter.ndjson"
    path.write_text(json.dumps(stay) + "\n" + json.dumps(stay | {"id": "y", "actualPeriod": "yesterday"}))
    assert invalid_ids({"Encounter": (path,)}, "all", 10)[0] == {"Encounter": ["y"]}
