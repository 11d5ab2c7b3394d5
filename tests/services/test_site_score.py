"""site-score and site-monitor under a real Prefect server: scores where the hospital wants them, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sqlalchemy import create_engine, text

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import Registry
from spinney.demo.federation import Village
from spinney.flows.site_monitor import BelowPromise, SiteMonitorInput, site_monitor
from spinney.flows.site_score import SiteScoreInput, site_score
from spinney.house.site_night import SiteNights
from spinney.scoring.predictions import Predictions
from spinney.scoring.score_night import NoChampion
from spinney.tasks.site import watch_of
from tests.federations import breast_village, registered
from tests.made_up import pull_at
from tests.nights import others, served
from tests.servers.fhir_writes import FhirWrites
from tests.servers.prefect_server import PrefectServer

pytestmark = [pytest.mark.service, pytest.mark.timeout(600), pytest.mark.usefixtures("prefect_server")]

SITES = ("ash", "birch", "cedar")
CANARY = "canary-4711-"
OPEN = 90


@pytest.fixture(scope="module")
def server() -> Iterator[FhirWrites]:
    with FhirWrites() as started:
        yield started


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory, server: FhirWrites) -> Iterator[Village]:
    """A round is over, ash has a champion, and then ninety new patients came."""
    village = breast_village(tmp_path_factory.mktemp("village"), SITES, choice={"fewest_test_patients": 5})
    with others(village) as running:
        part = running["ash"].result()
    registered(village, "ash", part, admission="not needed")
    path = village.site_file("ash")
    settings = yaml.safe_load(path.read_text())
    scores = {"table": {"url": "sqlite:///scores.db"}, "fhir": {"base_url": server.base_url}}
    path.write_text(yaml.safe_dump({**settings, "scores": scores}))
    arrive(village, outcomes=False)
    with served(village):
        yield village


def arrive(village: Village, outcomes: bool) -> None:
    """New patients in the hospital's own table; whether their outcome is known."""
    path = Path(yaml.safe_load(village.site_file("ash").read_text())["source"]["table"])
    before = pd.read_csv(path, dtype={"malignant": "string"})
    before = before[~before["patient"].str.startswith(CANARY)]
    new = before.tail(OPEN).copy()
    new["patient"] = [f"{CANARY}{number}" for number in range(OPEN)]
    new["index_time"] = pd.Timestamp("2026-02-01", tz="UTC") + pd.to_timedelta(range(OPEN), unit="h")
    if not outcomes:
        new["malignant"] = None
    pd.concat([before, new]).to_csv(path, index=False)


def scored(village: Village) -> list[dict]:
    engine = create_engine(f"sqlite:///{village.site_file('ash').parent / 'scores.db'}")
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(text("SELECT * FROM spinney_scores")).mappings()]
    engine.dispose()
    return rows


def promote(village: Village) -> Registry:
    site = read_site(village.site_file("ash"))
    registry = Registry(site.home, site.registry)
    registry.settle("breast", 1, promote=True)
    return registry


@pytest.mark.usefixtures("village")
def test_a_site_without_a_champion_says_how_to_get_one():
    with pytest.raises(NoChampion, match="ash has no champion of breast yet; take part in a round"):
        site_score(SiteScoreInput(site="ash"))


def test_scores_are_written_once_however_often_a_night_is_run(village: Village, server: FhirWrites):
    promote(village)
    first = site_score(SiteScoreInput(site="ash"))
    again = site_score(SiteScoreInput(site="ash"))
    assert (first["scored"], first["new"], first["new in the FHIR server"]) == (OPEN, OPEN, OPEN)
    assert (again["scored"], again["new"], again["new in the FHIR server"]) == (OPEN, 0, 0)
    assert len(scored(village)) == len(server.store["RiskAssessment"]) == OPEN
    assert {row["version"] for row in scored(village)} == {1}


def test_nothing_of_a_scored_patient_is_in_prefect_or_in_the_house(prefect_server: PrefectServer, village: Village):
    kept = [path for folder in (prefect_server.home, village.home("ash")) for path in folder.rglob("*")]
    holding = [path for path in kept if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert holding == []
    assert any(path.name == "prefect.db" for path in kept)


def test_the_audit_log_says_that_scores_were_written(village: Village):
    words = [line.entry.words for line in SiteNights(read_site(village.site_file("ash"))).audit.lines()]
    assert "90 scores of breast version 1 are in the table spinney_scores." in words
    assert "90 new scores of breast version 1 are in the FHIR server." in words


def test_when_outcomes_arrive_the_champion_is_held_against_them(village: Village):
    before = site_monitor(SiteMonitorInput(site="ash"))
    assert (before["known"], before["waiting"]) == (0, OPEN)
    arrive(village, outcomes=True)
    site = read_site(village.site_file("ash"))
    study = SiteNights(site).study
    pull_at(study, site)
    after = site_monitor(SiteMonitorInput(site="ash"))
    assert (after["known"], after["waiting"]) == (OPEN, 0)
    seen = watch_of(site, study)
    assert seen is not None
    assert seen.windows[-1].auroc.value > 0.9


def test_a_champion_below_its_promise_fails_the_run(village: Village):
    site = read_site(village.site_file("ash"))
    for path in Predictions(site.home, "breast").folder.glob("*.parquet"):
        told = pd.read_parquet(path)
        told["probability"] = 1 - told["probability"]
        told["index_time"] = told["index_time"].astype("datetime64[us]")
        told.to_parquet(path, index=False)
    with pytest.raises(BelowPromise, match=r"version 1 is below its promise: .*; a round with new data is wished"):
        site_monitor(SiteMonitorInput(site="ash"))
