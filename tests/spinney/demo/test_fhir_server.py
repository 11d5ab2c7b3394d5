"""The demo's FHIR server, asked by the product's own client and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spinney.configuration.site import SiteSettings
from spinney.demo.fhir_server import DemoFhirServer
from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.site import site_settings, world_study, write_data
from tests.made_up import pull_at


@pytest.fixture(scope="module")
def history() -> MadeUpHistory:
    return make_history(make_hospitals(4, 700, 5)[1], 5)


@pytest.fixture(scope="module")
def server(history: MadeUpHistory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFhirServer]:
    folder = tmp_path_factory.mktemp("server")
    write_data(history, "fhir", folder)
    with DemoFhirServer(folder / "fhir") as running:
        yield running


def asked(server: DemoFhirServer, address: str) -> httpx.Response:
    return httpx.get(f"{server.base_url}/{address}", trust_env=False)


def test_a_pull_over_http_gives_the_cohort_of_the_files(
    server: DemoFhirServer, history: MadeUpHistory, tmp_path: Path
) -> None:
    rest = {"kind": "fhir-rest", "base_url": server.base_url}
    files = {**write_data(history, "fhir", tmp_path), "path": tmp_path / "fhir"}
    there, here = (
        pull_at(world_study(), SiteSettings.model_validate(site_settings(history, source, home=tmp_path / "home")))
        for source in (rest, files)
    )
    assert there.cohort.digest == here.cohort.digest
    assert not any("complete" in note or "offers no search" in note for note in there.report.notes)


def test_pages_follow_each_other_by_their_links_and_make_up_the_total(
    server: DemoFhirServer, history: MadeUpHistory
) -> None:
    address, ids = "Encounter?_sort=_lastUpdated&_count=200&_total=accurate", []
    while address:
        bundle = asked(server, address).json()
        ids += [entry["resource"]["id"] for entry in bundle["entry"]]
        address = next((link["url"].rpartition("/")[2] for link in bundle["link"]), "")
    assert len(ids) == len(set(ids)) == bundle["total"] == len(history.events["Encounter"])


def test_resources_come_in_the_order_of_their_last_update(server: DemoFhirServer) -> None:
    bundle = asked(server, "Observation?_sort=_lastUpdated&_count=500").json()
    times = [entry["resource"]["meta"]["lastUpdated"] for entry in bundle["entry"]]
    assert times == sorted(times)


def test_a_search_by_code_finds_the_parts_of_a_panel(server: DemoFhirServer, history: MadeUpHistory) -> None:
    rows = history.events["Observation"]
    counted = asked(server, "Observation?combo-code=http%3A%2F%2Floinc.org%7C8480-6&_summary=count").json()["total"]
    assert counted == (rows["code"] == "http://loinc.org|8480-6").sum()


def test_a_stay_is_found_by_the_days_that_it_covers(server: DemoFhirServer, history: MadeUpHistory) -> None:
    stay = history.events["Encounter"].dropna(subset="until").iloc[100]
    inside = (stay["time"] + (stay["until"] - stay["time"]) / 2).strftime("%Y-%m-%dT%H:%M:%SZ")
    bundle = asked(server, f"Encounter?date=ge{inside}&date=le{inside}&_count=1000").json()
    assert f"e{stay['number']}" in [entry["resource"]["id"] for entry in bundle["entry"]]


@pytest.mark.parametrize(
    ("address", "status"),
    [("Observation?colour=red", 400), ("Observation?date=2024", 400), ("Observation?_count=x", 400), ("Robot", 404)],
)
def test_what_it_does_not_understand_it_refuses(server: DemoFhirServer, address: str, status: int) -> None:
    answer = asked(server, address)
    assert answer.status_code == status
    assert answer.json()["resourceType"] == "OperationOutcome"
