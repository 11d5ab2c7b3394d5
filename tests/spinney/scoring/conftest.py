"""A site between a pull for scoring and the write-back."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.choice.model import FederatedForest
from spinney.cohort.handover import Handover
from spinney.cohort.pull_report import OpenRows
from spinney.configuration.site import SiteSettings
from spinney.scoring.scores import apply_model
from spinney.study.study import Study
from spinney.trial.simulate import pooled_forest
from tests.made_up import pull_open_at
from tests.spinney.in_process import cohorts, study
from tests.spinney.scoring.tonight import NOW, table


@pytest.fixture(scope="session")
def wood() -> Study:
    return study()


@pytest.fixture(scope="session")
def model(wood: Study) -> FederatedForest:
    return pooled_forest(wood, cohorts(wood))


@pytest.fixture
def site(tmp_path: Path) -> SiteSettings:
    table().to_csv(tmp_path / "his.csv", index=False)
    return SiteSettings(name="ash", home=tmp_path / "home", source={"kind": "files", "table": tmp_path / "his.csv"})


@pytest.fixture
def pulled(site: SiteSettings, wood: Study) -> OpenRows:
    return pull_open_at(wood, site, now=NOW)


@pytest.fixture
def handover(site: SiteSettings, wood: Study, model: FederatedForest, pulled: OpenRows) -> Handover:
    made = Handover(site.vault, wood.name)
    made.keep_scores(apply_model(site.vault, pulled.unripe, wood, model))
    return made
