"""The champion, for a notebook of the hospital's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spinney
from spinney.configuration.site import read_site
from spinney.connectors.mlflow import Registry, lineage_of
from spinney.errors import SpinneyError
from spinney.trial.simulate import simulate
from tests.federations import breast_study, breast_table, breast_village, cohorts_of


def test_the_champion_is_the_model_that_was_registered_last(tmp_path: Path) -> None:
    study, village = breast_study(), breast_village(tmp_path)
    model = simulate(study, cohorts_of(village, study)).outcomes["ash"]
    site = read_site(village.site_file("ash"))
    registry = Registry(site.home, site.registry)
    version = registry.register(study, model, lineage_of(study, "ash", model.model, 1, "d" * 64))
    with pytest.raises(SpinneyError, match="there is no breast champion"):
        spinney.load_champion(village.site_file("ash"))
    registry.promote(study.name, version.number)
    champion = spinney.load_champion(village.site_file("ash"))
    table = breast_table().head(50)
    assert np.array_equal(champion.predict_proba(table), model.model.predict_proba(table))
    assert spinney.load_champion(village.site_file("ash"), study.name).digest == champion.digest
