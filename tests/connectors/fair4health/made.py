"""Small documents in the shapes that the PPDDM manager of FAIR4Health writes, with made-up content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spinney.connectors.fair4health.imported import Imported, import_document

Json = dict[str, Any]
COUNT = "aggr:groupBy(MedicationStatement.subject.reference,count())"
QUANTITY = "value:Observation.valueQuantity.value"
CODED = "value:Observation.valueCodeableConcept.coding.code"


def variable(
    query: str, path: str, name: str = "X", data_type: str = "numeric", role: str = "independent"
) -> dict[str, Any]:
    return {
        "name": name,
        "fhir_query": query,
        "fhir_path": path,
        "variable_data_type": data_type,
        "variable_type": role,
    }


def outcome(query: str, path: str, name: str = "Outcome") -> Json:
    return variable(query, path, name, role="dependent")


READMITTED = outcome("/Encounter", "value:readmission:30", "Readmitted")
STROKE = outcome("/Condition?code:sw=I63", "value:exists", "Stroke")
GENDER = variable("/Patient", "value:Patient.gender", "Gender", "categorical")
AGE = variable("/Patient", "value:Patient.birthDate.getPeriod($this, now(), 'years')", "Age")
DIABETES = variable("/Condition?code:sw=E11", "value:exists", "Diabetes")
GOUT = variable("/Condition?code=M10.9&subject=p1", "value:exists", "Gout")
DRUGS = variable("/MedicationStatement", COUNT, "Number of drugs")
STEPS = variable("/Observation?code=71000", QUANTITY, "Steps a day")


def feature_set(*variables: Json, **more: Any) -> Json:
    return {"project_id": "p", "name": "Use case 2", "description": "Made up", "variables": [*variables], **more}


def statistics(of: Json, low: float | None, high: float | None) -> Json:
    return {"variable": {**of, "name": of["name"].replace(" ", "")}, "min_value": low, "max_value": high}


def agent(*found: Json, status: str = "selected") -> Json:
    told = {"number_of_records": 90, "variable_statistics": [*found]}
    return {"agent": {"agent_id": "a"}, "agent_data_statistics": told, "selection_status": status}


def data_set(features: Json, *criteria: str | Json, agents: tuple[Json, ...] = ()) -> Json:
    listed = [one if isinstance(one, dict) else {"fhir_query": one} for one in criteria]
    sources = {"dataset_sources": [*agents]} if agents else {}
    return {"project_id": "p", "featureset": features, "eligibility_criteria": listed, **sources}


def parameter(name: str, value: object) -> Json:
    return {"name": name, "data_type": "string", "value": value}


def algorithm(name: str = "classification_random_forest", **parameters: object) -> Json:
    return {"name": name, "parameters": [parameter(*one) for one in parameters.items()]}


def mining_model(data: Json, *algorithms: Json, **more: Any) -> Json:
    return {"model_id": "m", "dataset": data, "name": "A model", "algorithms": [*algorithms], **more}


def prediction() -> Json:
    return {"identifier": "7", "variables": [{"name": "Gender", "data_type": "string", "value": "female"}]}


def written(folder: Path, content: Any) -> Path:
    """As the platform writes it: an indented file."""
    file = folder / "document.json"
    file.write_text(json.dumps(content, indent=2))
    return file


def imported(folder: Path, content: Any) -> Imported:
    return import_document(written(folder, content))


def line_with(folder: Path, words: str) -> int:
    """The line of the document in which some words stand first."""
    lines = (folder / "document.json").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)
