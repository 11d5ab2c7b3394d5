"""The files of a made-up hospital: the same cohort in every form, and the same bytes for a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spinney.cohort.pull_report import PullResult
from spinney.configuration.site import read_site
from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import Hospital, make_hospitals
from spinney.demo.site import Form, site_settings, world_study, write_data, write_tables, write_yaml
from tests.made_up import pull_at

FORMS: tuple[Form, ...] = ("fhir", "sql", "table")
HOSPITALS = make_hospitals(4, 700, 5)


def pulled(
    folder: Path, hospital: Hospital, form: Form, url: str | None = None, history: MadeUpHistory | None = None
) -> PullResult:
    history = history or make_history(hospital, 5)
    source = write_data(history, form, folder / form, url)
    settings = site_settings(history, source, home=str(folder / "home"))  # one vault: the same pseudonyms
    write_yaml(folder / form / "site.yaml", settings, "A made-up hospital.")
    return pull_at(world_study(), read_site(folder / form / "site.yaml"))


@pytest.mark.parametrize("hospital", HOSPITALS, ids=lambda one: one.name)
def test_fhir_sqlite_and_a_finished_table_give_the_same_cohort(tmp_path: Path, hospital: Hospital) -> None:
    results = [pulled(tmp_path, hospital, form) for form in FORMS]
    assert results[0].cohort.rows > 50
    assert not any(result.report.quarantined for result in results)
    assert len({result.cohort.digest for result in results}) == 1


@pytest.mark.parametrize("hospital", [HOSPITALS[0], HOSPITALS[2]], ids=lambda one: one.name)
def test_postgresql_gives_the_same_cohort_as_sqlite(
    tmp_path: Path, postgres: Callable[..., str], hospital: Hospital
) -> None:
    there = pulled(tmp_path, hospital, "sql", postgres())
    assert pulled(tmp_path, hospital, "sql").cohort.digest == there.cohort.digest


@pytest.mark.parametrize("hospital", [HOSPITALS[0], HOSPITALS[2]], ids=lambda one: one.name)
def test_omop_on_postgresql_and_sqlite_gives_the_same_cohort_as_fhir(
    tmp_path: Path, postgres: Callable[..., str], hospital: Hospital
) -> None:
    history = known_at_once(make_history(hospital, 5))
    fhir = pulled(tmp_path, hospital, "fhir", history=history)
    for url in (None, postgres()):
        omop = pulled(tmp_path, hospital, "omop", url, history)
        assert not omop.report.quarantined
        assert omop.cohort.digest == fhir.cohort.digest


def known_at_once(history: MadeUpHistory) -> MadeUpHistory:
    """With every event recorded when it happened, since OMOP can't say anything else."""
    events = {
        kind: rows.assign(recorded=rows["time"]) if kind != "Encounter" else rows
        for kind, rows in history.events.items()
    }
    return MadeUpHistory(history.hospital, history.patients, events)


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    first = write_tables(tmp_path / "a", sites=2, patients=200, seed=7)
    second = write_tables(tmp_path / "b", sites=2, patients=200, seed=7)
    assert [file.read_bytes() for file in first.values()] == [file.read_bytes() for file in second.values()]


def test_another_seed_writes_other_patients(tmp_path):
    first = write_tables(tmp_path / "a", sites=2, patients=200, seed=1)
    second = write_tables(tmp_path / "b", sites=2, patients=200, seed=2)
    assert first["ash"].read_bytes() != second["ash"].read_bytes()
