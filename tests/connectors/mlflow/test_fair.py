"""A version for catalogues: FAIR4ML's own words, the registered figures, digests, and no count of patients."""

from __future__ import annotations

import json
import re

import pytest

from spinney.connectors.mlflow import Registry
from spinney.connectors.mlflow.fair import fair
from tests.connectors.mlflow.registered import register
from tests.spinney.in_process import Wood

WORDS = {  # of FAIR4ML 0.1.0
    *("MLModel", "MLModelEvaluation", "ethicalSocial", "evaluatedMLModel", "evaluatedOn", "evaluationDataset"),
    *("evaluationMetrics", "evaluationResults", "evaluationSoftware", "extrinsicEvaluation", "fineTunedFrom"),
    *("codeSampleSnippet", "hasCO2eEmissions", "hasEvaluation", "intendedUse", "legal", "mlTask", "modelCategory"),
    *("modelRisksBiasLimitations", "sharedBy", "testedOn", "trainedOn", "usageInstructions", "validatedOn"),
}


@pytest.fixture
def version(registry: Registry, wood: Wood):
    return register(registry, wood)


def test_a_catalogue_gets_the_same_by_digests(registry: Registry, version):
    told, lineage = registry.fair(version), registry.lineage(version)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["@id"] == f"urn:sha256:{lineage.model_digest}"
    assert {house["name"]: house["spinney:trees"] for house in told["prov:wasAttributedTo"]} == lineage.trees
    measured = told["fair4ml:trainedOn"]["variableMeasured"]
    assert [one["name"] for one in measured] == ["x0", "x1", "x2", "x3"]


def test_it_is_a_model_in_words_that_the_vocabulary_has(registry: Registry, version):
    text = json.dumps(registry.fair(version))
    assert registry.fair(version)["@type"][0] == "fair4ml:MLModel"
    assert {*re.findall(r'"fair4ml:(\w+)"', text)} <= WORDS
    assert "SoftwareSourceCode" not in text


def test_figures_are_the_registered_ones(registry: Registry, wood: Wood, version):
    figure = wood.outcomes["elm"].figures["auroc"]
    metrics = registry.fair(version)["fair4ml:hasEvaluation"]["fair4ml:evaluationMetrics"]
    told = next(one for one in metrics if one["name"] == "auroc")
    assert (told["value"], told["minValue"], told["maxValue"]) == (figure.value, figure.low, figure.high)


def test_nothing_counts_patients(registry: Registry, version):
    evidence = {**registry.evidence(version), "rows": 31337, "patients": 27183}
    text = json.dumps(fair(version, registry.lineage(version), evidence, registry.features(version)))
    assert "31337" not in text
    assert "27183" not in text


def test_too_few_test_patients_are_said(registry: Registry, version):
    evidence = {**registry.evidence(version), "test": {}}
    told = fair(version, registry.lineage(version), evidence, registry.features(version))["fair4ml:hasEvaluation"]
    assert told["fair4ml:evaluationResults"] == "too few test patients for figures"
    assert told["fair4ml:evaluationMetrics"] == []
