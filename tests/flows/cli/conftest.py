"""Folders in which commands are typed: of a site with files, and of one with two models."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.mlflow import lineage_of
from spinney.demo.federation import Village
from spinney.trial.simulate import Simulation
from tests.federations import breast_study, breast_village, simulated
from tests.flows.cli.stays import STUDY, resources
from tests.made_up import write
from tests.servers.migrated import registry_in

SITES = ("ash", "birch", "cedar")
ENOUGH = {"choice": {"fewest_test_patients": 5}, "split": {"newest": 0}}  # whatever the key of the vault deals out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study, and with a site whose data are files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "site.yaml").write_text("name: north\nhome: home\nsource: {kind: files, path: fhir}\n")
    write(tmp_path / "fhir", resources())
    return tmp_path


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Simulation]:
    made = breast_village(tmp_path_factory.mktemp("reference"), SITES, **ENOUGH)
    return [simulated(made, breast_study(**ENOUGH), number) for number in (1, 2)]


@pytest.fixture
def two_models(tmp_path: Path, results: list[Simulation], monkeypatch: pytest.MonkeyPatch) -> Village:
    """Ash: version 1 in use, version 2 a candidate."""
    made = breast_village(tmp_path, SITES, **ENOUGH)
    study = breast_study(**ENOUGH)
    registry = registry_in(made.home("ash"))
    for number, result in enumerate(results, start=1):
        outcome = result.outcomes["ash"]
        registry.register(study, outcome, lineage_of(study, "ash", outcome.model, number))
        if number == 1:
            registry.promote("breast", 1)
    monkeypatch.chdir(made.folder / "ash")
    return made
