"""Resources that are no valid FHIR are found, and what can't be read stops nobody."""

from __future__ import annotations

from pathlib import Path

from spinney.connectors.fhir.check import invalid_ids


def test_an_id_that_is_no_text_and_nesting_without_end_are_no_valid_resources(tmp_path: Path) -> None:
    path = tmp_path / "Observation.ndjson"
    path.write_text("[" * 20_000 + "]" * 20_000 + '\n{"resourceType": "Observation", "id": "\\ud800"}\n')
    assert invalid_ids({"Observation": (path,)}, "all", 10) == ({}, {"Observation": 2})
