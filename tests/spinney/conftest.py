"""Two nights of a small federation: in the second, a site has a champion."""

from __future__ import annotations

import pytest

from spinney.connectors.mlflow import Registry, lineage_of
from spinney.demo.federation import Village
from spinney.house.site_night import RoundResult as Night
from spinney.study.study import Study
from tests.federations import breast_study, breast_village
from tests.nights import night
from tests.servers.migrated import registry_in
from tests.spinney.house.houses import SITES


@pytest.fixture(scope="session")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Village, Night, Night]:
    """Ash has a champion from the first night; in the second it is judged."""
    village = breast_village(tmp_path_factory.mktemp("village"), SITES)
    _, parts = night(village)
    registry = registry_in(village.home("ash"))
    register(registry, breast_study(), parts["ash"])
    registry.promote("breast", 1)
    _, later = night(village)
    return village, parts["ash"], later["ash"]


def register(registry: Registry, study: Study, part: Night) -> None:
    assert part.outcome is not None
    lineage = lineage_of(study, "ash", part.outcome.model, part.number, part.cohort.digest)
    registry.register(study, part.outcome, lineage)
