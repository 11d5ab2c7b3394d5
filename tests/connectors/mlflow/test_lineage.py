"""Where a version comes from."""

from __future__ import annotations

import json

import pytest

from tests.connectors.mlflow.registered import register


def test_a_version_says_where_it_comes_from(registry, wood):
    version = register(registry, wood)
    lineage, model = registry.lineage(version), wood.outcomes["elm"].model
    assert (lineage.study_digest, lineage.round, lineage.site) == (wood.study.digest, 1, "elm")
    assert (lineage.cohort_digest, lineage.audit_head) == ("c" * 64, "a" * 64)
    assert lineage.trees == {site: model.owners_.count(site) for site in sorted(set(model.owners_))}
    assert sum(lineage.weights.values()) == pytest.approx(1, abs=0.001)
    assert version.model_digest == model.digest == lineage.model_digest
    assert json.loads(version.said("trees")) == lineage.trees
