"""FHIR resources about a model are valid, and lead from one to the other."""

from __future__ import annotations

import base64
import json

import pytest
from fhir.resources.R4B import get_fhir_model_class

from spinney.connectors.mlflow.lineage import Lineage
from spinney.reports.fhir_records import fhir_records
from spinney.study.study import Study

PLAIN = {"name": "wood", "features": [{"name": "age", "kind": "binary"}], "label": {"name": "fell"}}
METADATA = {"version": "3", "name": "wood 3", "description": "trees", "fair4ml:usageInstructions": "load it"}


def study(**more: str) -> Study:
    return Study.model_validate({**PLAIN, **more})


def records(study: Study, organisation: str = "") -> dict[str, dict[str, object]]:
    lineage = Lineage(
        study="wood", study_digest=study.digest, site="ash", round=7, cohort_digest="c" * 64, model_digest="d" * 64,
        trees={"ash": 6, "elm": 4}, weights={"ash": 0.75, "elm": 0.25},
    )  # fmt: skip
    return fhir_records(study, lineage, METADATA, "2031-03-01", organisation)


@pytest.mark.parametrize("organisation", ["", "Wood Hospital"])
@pytest.mark.parametrize("purpose", ["", "Fewer falls."])
def test_each_is_valid_after_a_way_through_json(organisation: str, purpose: str) -> None:
    found = records(study(purpose=purpose), organisation)
    assert {*found} == {"research-study.json", "library.json", "provenance.json"}
    for resource in found.values():
        kind = get_fhir_model_class(resource["resourceType"])
        again = json.loads(kind.model_validate_json(json.dumps(resource)).model_dump_json())
        assert again["id"] == resource["id"]


def test_the_library_holds_the_metadata_and_provenance_names_all_houses() -> None:
    found = records(study())
    content = found["library.json"]["content"][0]["data"]  # type: ignore[index]
    assert json.loads(base64.b64decode(content)) == METADATA
    assert found["provenance.json"]["target"] == [{"reference": f"Library/{'d' * 64}"}]
    agents = [one["who"]["display"] for one in found["provenance.json"]["agent"]]  # type: ignore[attr-defined]
    assert agents == ["ash: 6 trees, 75.0 % of the vote", "elm: 4 trees, 25.0 % of the vote"]


def test_what_nobody_has_said_is_left_out() -> None:
    assert "sponsor" not in records(study())["research-study.json"]
    assert records(study(), "Wood Hospital")["library.json"]["publisher"] == "Wood Hospital"
