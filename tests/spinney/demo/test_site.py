"""A hospital's patients as FHIR, in SQLite, in PostgreSQL and as a finished table: the same cohort every time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spinney.cohort.pull_report import PullResult
from spinney.configuration.site import read_site
from spinney.connectors.fhir.check import invalid_ids
from spinney.demo.history import make_history
from spinney.demo.hospitals import Hospital, make_hospitals
from spinney.demo.site import site_settings, world_study, write_data, write_yaml
from tests.made_up import pull_at

HOSPITALS = make_hospitals(4, 700, 5)


def pulled(folder: Path, hospital: Hospital, form: str, url: str | None = None) -> PullResult:
    history = make_history(hospital, 5)
    source = write_data(history, form, folder / form, url)
    settings = site_settings(history, source, home=str(folder / "home"))  # one vault: the same pseudonyms
    write_yaml(folder / form / "site.yaml", settings, "A made-up hospital.")
    return pull_at(world_study(), read_site(folder / form / "site.yaml"))


@pytest.mark.parametrize("hospital", HOSPITALS, ids=lambda one: one.name)
def test_fhir_sqlite_and_a_finished_table_give_the_same_cohort(tmp_path: Path, hospital: Hospital) -> None:
    results = [pulled(tmp_path, hospital, form) for form in ("fhir", "sql", "table")]
    assert results[0].cohort.rows > 50
    assert not any(result.report.quarantined for result in results)
    assert len({result.cohort.digest for result in results}) == 1


@pytest.mark.parametrize("hospital", [HOSPITALS[0], HOSPITALS[2]], ids=lambda one: one.name)
def test_postgresql_gives_the_same_cohort_as_sqlite(
    tmp_path: Path, postgres: Callable[..., str], hospital: Hospital
) -> None:
    there = pulled(tmp_path, hospital, "sql", postgres())
    assert pulled(tmp_path, hospital, "sql").cohort.digest == there.cohort.digest


@pytest.mark.parametrize("hospital", HOSPITALS, ids=lambda one: one.name)
def test_every_resource_is_valid_fhir(tmp_path: Path, hospital: Hospital) -> None:
    write_data(make_history(hospital, 5), "fhir", tmp_path)
    files = {path.stem: [path] for path in (tmp_path / "fhir").glob("*.ndjson")}
    invalid, looked_at = invalid_ids(files, "sample", 400)
    assert invalid == {}
    assert sorted(looked_at) == ["Condition", "Encounter", "MedicationRequest", "Observation", "Patient"]


def test_hospitals_write_in_their_own_way() -> None:
    alder, ash, beech, _ = (make_history(one, 5).events["Observation"] for one in HOSPITALS)
    assert set(ash["unit"].dropna()) >= {"mm[Hg]", "mg/dL"}
    assert set(beech["unit"].dropna()) >= {"mmHg", "umol/L"}
    assert beech["code"].str.startswith("urn:beech:laboratory|").any()
    assert alder.loc[alder["code"] == "http://loinc.org|2823-3", "unit"].isna().all()
