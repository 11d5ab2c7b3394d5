"""A version for catalogues, as FAIR4ML 0.1.0 in JSON-LD; whatever nobody here knows is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.connectors.mlflow.card import LIMITS, registered_on
from spinney.connectors.mlflow.lineage import Lineage
from spinney.connectors.mlflow.store import Version
from spinney.study.settings import Feature

CONTEXT = {
    "@vocab": "https://schema.org/",
    "fair4ml": "https://w3id.org/fair4ml#",
    "prov": "http://www.w3.org/ns/prov#",
    "spinney": "urn:spinney:",
}
USE = (
    "import mlflow; mlflow.pyfunc.load_model(MODEL).predict(frame) where spinney is installed, or model.onnx with any "
    "ONNX runtime; columns as in variableMeasured."
)


def fair(
    version: Version, lineage: Lineage, evidence: Mapping[str, Any], features: Sequence[Feature]
) -> dict[str, Any]:
    """Identifiers are digests, so that anybody can check them; nothing counts patients."""
    cohort = {
        "@type": "Dataset",
        "@id": f"urn:sha256:{lineage.cohort_digest}",
        "name": f"cohort of {lineage.study} at {lineage.site}; it never leaves the house",
        "isAccessibleForFree": False,
        "variableMeasured": [_variable(feature) for feature in features],
    }
    return {
        "@context": CONTEXT,
        "@type": ["fair4ml:MLModel", "prov:Entity"],
        "@id": f"urn:sha256:{lineage.model_digest}",
        "identifier": lineage.model_digest,
        "name": f"{version.name} {version.number}",
        "description": evidence.get("description") or f"Weighted trees for the study {lineage.study}",
        "version": str(version.number),
        "dateCreated": registered_on(version),
        "encodingFormat": "application/x-spinney",
        "fair4ml:mlTask": "binary classification",
        "fair4ml:modelCategory": ["supervised", "federated random forest", evidence["choice"]["model"]],
        "fair4ml:modelRisksBiasLimitations": LIMITS,
        "fair4ml:usageInstructions": USE,
        "fair4ml:trainedOn": cohort,
        "fair4ml:hasEvaluation": _evaluation(lineage, evidence),
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "@id": f"urn:spinney:{lineage.study_digest}:round:{lineage.round}",
            "prov:used": [{"@id": f"urn:sha256:{lineage.study_digest}", "name": f"study {lineage.study}"}],
        },
        "prov:wasAttributedTo": [
            {"@type": "Organization", "name": house, "spinney:trees": trees, "spinney:share": lineage.weights[house]}
            for house, trees in lineage.trees.items()
        ],
        "spinney:auditHead": lineage.audit_head,
        "spinney:withdrawn": list(lineage.without),
    }


def _evaluation(lineage: Lineage, evidence: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: one for name, one in evidence.get("test", {}).items() if one and one["value"] is not None}
    told: dict[str, Any] = {
        "@type": "fair4ml:MLModelEvaluation",
        "fair4ml:evaluatedMLModel": {"@id": f"urn:sha256:{lineage.model_digest}"},
        "fair4ml:extrinsicEvaluation": False,
        "fair4ml:evaluationMetrics": [
            {
                "@type": "PropertyValue",
                "name": name,
                "value": one["value"],
                **{
                    bound: one[end]
                    for bound, end in (("minValue", "low"), ("maxValue", "high"))
                    if one[end] is not None
                },
            }
            for name, one in figures.items()
        ],
    }
    words = "test patients of this site, whom no choice has seen; minValue and maxValue are bounds of 95 %"
    return {**told, "fair4ml:evaluationResults": words if figures else "too few test patients for figures"}


def _variable(feature: Feature) -> dict[str, Any]:
    plain: dict[str, Any] = {"@type": "PropertyValue", "name": feature.name, "measurementTechnique": feature.kind}
    if feature.range:
        plain |= {"minValue": feature.range[0], "maxValue": feature.range[1]}
    return plain | ({"unitCode": feature.unit} if feature.unit else {})
