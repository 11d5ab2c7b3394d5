"""Alone: a site's own trees, and nothing from anybody."""

from __future__ import annotations

import pytest

from spinney.trial.simulate import simulate
from tests.spinney.in_process import SITES, cohorts, study


@pytest.mark.parametrize("name", ["local", "local-adaboost"])
def test_alone_a_site_has_only_its_own_trees_and_nothing_passes_between_sites(name):
    wood = study(algorithm={"name": name})
    result = simulate(wood, cohorts(wood))
    assert result.parcel_bytes == 0
    assert result.model_digest == ""
    for site, outcome in result.outcomes.items():
        assert {*outcome.model.owners_} == {site}
        assert set(outcome.auroc) >= {"local", "chosen"}


def test_the_local_forest_is_the_one_that_the_federation_compares_with():
    alone = simulate(study(algorithm={"name": "local"}), cohorts(study())).outcomes
    together = simulate(study(), cohorts(study())).outcomes
    for name in SITES:
        assert alone[name].auroc["local"] == together[name].auroc["local"]
