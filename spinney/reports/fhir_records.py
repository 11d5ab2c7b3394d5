"""A model as FHIR R4 resources for research infrastructures: ResearchStudy, Library, Provenance. No patient in any."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from spinney.connectors.mlflow.lineage import Lineage
from spinney.study.study import Study

STUDIES, MODELS = "urn:spinney:study", "urn:spinney:model"
LIBRARY_TYPES = "http://terminology.hl7.org/CodeSystem/library-type"
AGENT_TYPES = "http://terminology.hl7.org/CodeSystem/provenance-participant-type"
Resource = dict[str, Any]


def fhir_records(
    study: Study, lineage: Lineage, metadata: Mapping[str, Any], day: str, organisation: str
) -> dict[str, Resource]:
    """Name of a file -> resource, each held against the models of `fhir.resources`. `metadata` is FAIR4ML's."""
    from fhir.resources.R4B import get_fhir_model_class  # half a second to load

    found = {
        "research-study.json": _study(study, organisation),
        "library.json": _library(study, lineage, metadata, day, organisation),
        "provenance.json": _provenance(lineage, day),
    }
    for resource in found.values():
        get_fhir_model_class(resource["resourceType"]).model_validate(resource)
    return found


def _study(study: Study, organisation: str) -> Resource:
    return {
        "resourceType": "ResearchStudy",
        "id": study.digest,
        "identifier": [{"system": STUDIES, "value": study.digest}],
        "title": study.name,
        "status": "active",
        **({"description": study.description} if study.description else {}),
        **({"objective": [{"name": study.purpose}]} if study.purpose else {}),
        **({"sponsor": {"display": organisation}} if organisation else {}),
        "note": [{"text": f"version {study.version}; outcome {study.label.name}"}],
    }


def _library(study: Study, lineage: Lineage, metadata: Mapping[str, Any], day: str, organisation: str) -> Resource:
    content = base64.b64encode(json.dumps(metadata, sort_keys=True).encode()).decode()
    return {
        "resourceType": "Library",
        "id": lineage.model_digest,
        "identifier": [{"system": MODELS, "value": lineage.model_digest}],
        "version": str(metadata["version"]),
        "title": str(metadata["name"]),
        "status": "active",
        "experimental": True,
        "type": {"coding": [{"system": LIBRARY_TYPES, "code": "logic-library"}]},
        "date": day,
        "description": str(metadata["description"]),
        **({"purpose": study.purpose} if study.purpose else {}),
        **({"publisher": organisation} if organisation else {}),
        "usage": str(metadata["fair4ml:usageInstructions"]),
        "relatedArtifact": [{"type": "derived-from", "display": study.name, "url": f"urn:sha256:{study.digest}"}],
        "content": [{"contentType": "application/ld+json", "data": content}],
    }  # fmt: skip


def _provenance(lineage: Lineage, day: str) -> Resource:
    return {
        "resourceType": "Provenance",
        "id": lineage.model_digest,
        "target": [{"reference": f"Library/{lineage.model_digest}"}],
        "recorded": f"{day}T00:00:00Z",
        "reason": [{"text": f"round {lineage.round} of {lineage.study}"}],
        "agent": [
            {
                "type": {"coding": [{"system": AGENT_TYPES, "code": "author"}]},
                "who": {"display": f"{house}: {trees} trees, {100 * lineage.weights[house]:.1f} % of the vote"},
            }
            for house, trees in lineage.trees.items()
        ],
        "entity": [
            {"role": "source", "what": {"identifier": {"system": STUDIES, "value": lineage.study_digest}}},
            {"role": "source", "what": {"display": f"cohort {lineage.cohort_digest[:16]}, which never leaves"}},
        ],
    }  # fmt: skip
