"""What a night does besides the steps of its round: done twice, it is as if it was done once."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from prefect import flow

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CANDIDATE, CHAMPION, Registry, RegistryFailed, Version
from spinney.demo.federation import Village
from spinney.errors import RoundVoid
from spinney.house.rounds import Over
from spinney.house.site_night import RoundResult, SiteNights
from spinney.reports.gather import site_facts
from spinney.tasks.round import (
    put_model_by,
    register_model,
    register_what_is_owed,
    report_night,
    standing,
    tidy_exchange,
)
from tests.federations import breast_village
from tests.nights import leave_old, night
from tests.servers.migrated import registry_in

SITES = ("ash", "birch", "cedar", "elder")


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    made = breast_village(tmp_path_factory.mktemp("village"), SITES)
    for name in SITES:
        registry_in(made.home(name))
    return made


@pytest.fixture(scope="module")
def parts(village: Village) -> dict[str, RoundResult]:
    return night(village)[1]


def registered(nights: SiteNights, part: RoundResult, *, waits: bool = False) -> Version:
    put_model_by.fn(nights, part, waits=waits)
    return register_model.fn(nights, part.number)


def nights_of(village: Village, name: str) -> SiteNights:
    return SiteNights(read_site(village.site_file(name)))


def test_a_round_s_model_is_registered_once_with_where_the_log_stood(village: Village, parts: dict[str, RoundResult]):
    nights = nights_of(village, "ash")
    versions = [registered(nights, parts["ash"]) for _ in range(2)]
    assert [version.number for version in versions] == [1, 1]
    lineage = Registry(nights.home, nights.site.registry).lineage(versions[0])
    assert lineage.audit_head == nights.audit.verify().chain
    assert lineage.cohort_digest == parts["ash"].cohort.digest


def test_a_model_that_takes_over_is_champion_and_what_people_did_since_stays(
    village: Village, parts: dict[str, RoundResult]
):
    nights = nights_of(village, "birch")
    version = registered(nights, parts["birch"], waits=True)
    assert standing(nights, version).champion == ""
    registered(nights, parts["birch"])
    assert (standing(nights, version).version, standing(nights, version).champion) == ("1", "1")
    registry = Registry(nights.home, nights.site.registry)
    registry.store.unpoint(CHAMPION, version.name)
    registered(nights, parts["birch"])  # the run is started again
    assert registry.find("breast", CHAMPION) is None


def test_a_model_with_a_question_stays_a_candidate(village: Village, parts: dict[str, RoundResult]):
    nights, part = nights_of(village, "cedar"), parts["cedar"]
    version = registered(nights, replace(part, champion_away=True))  # nobody knows what it would replace
    assert Registry(nights.home, nights.site.registry).find("breast", CANDIDATE).number == version.number
    assert standing(nights, version).champion == ""


def test_of_a_void_round_there_is_nothing_to_register(village: Village, parts: dict[str, RoundResult]):
    void = RoundResult(9, Over("", "2 sites are left and 3 are needed"), None, parts["ash"].cohort)
    with pytest.raises(RoundVoid, match="2 sites are left and 3 are needed"):
        put_model_by.fn(nights_of(village, "ash"), void)


def test_a_model_that_could_not_be_registered_is_registered_by_a_later_run_as_was_said_then(
    village: Village, parts: dict[str, RoundResult], monkeypatch: pytest.MonkeyPatch
):
    nights = nights_of(village, "elder")
    registry = registry_in(nights.home)
    put_model_by.fn(nights, parts["elder"])
    monkeypatch.setattr("spinney.connectors.mlflow.addresses.PATIENCE", 0.1)
    nights.keep(1, {"round": 1, "version": 0})
    with sqlite3.connect(registry.folder / "mlflow.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")  # somebody else is at it
        with pytest.raises(RegistryFailed, match="locked") as failed:
            register_model.fn(nights, 1)
        other.execute("ROLLBACK")
    other.close()
    assert failed.value.transient
    assert registry.owed("breast") == [1]
    run_tasks_directly(monkeypatch)
    register_what_is_owed(nights)
    assert registry.owed("breast") == []
    assert registry.find("breast", CHAMPION).model_digest == parts["elder"].outcome.model.digest
    assert nights.result(1)["version"] == 1


def test_what_was_put_by_and_is_damaged_is_named_and_stops_nobody(
    village: Village, parts: dict[str, RoundResult], monkeypatch: pytest.MonkeyPatch
):
    nights = nights_of(village, "ash")
    folder = nights.home / "registry" / "owed" / "breast" / "1"
    put_model_by.fn(nights, parts["ash"])
    (folder / "owed.json").write_text("{")
    with pytest.raises(RegistryFailed, match=f"{folder} is damaged"):
        register_model.fn(nights, 1)
    run_tasks_directly(monkeypatch)
    register_what_is_owed(nights)
    shutil.rmtree(folder)


def run_tasks_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.tasks.round.register_model", register_model.fn)


@pytest.mark.usefixtures("prefect")
def test_the_report_is_a_private_page_and_the_run_says_where(
    village: Village, parts: dict[str, RoundResult], caplog: pytest.LogCaptureFixture
):
    nights = nights_of(village, "ash")

    @flow(name="reporting")
    def reporting() -> None:
        report_night(nights, site_facts(nights, parts["ash"]))

    with caplog.at_level(logging.INFO, "prefect.task_runs"):
        reporting()
    page = nights.home / "reports/breast/round-1.html"
    assert page.stat().st_mode & 0o077 == 0
    assert f"The report is in {page}" in caplog.messages


def test_old_messages_go_and_newer_ones_stay(village: Village, parts: dict[str, RoundResult]):  # noqa: ARG001
    old = leave_old(village, "ash")
    before = messages(village)
    tidy_exchange(nights_of(village, "ash"))
    assert messages(village) == before - {old}


def messages(village: Village) -> set[Path]:
    return {path for path in (village.folder / "exchange").rglob("*") if path.is_file()}
