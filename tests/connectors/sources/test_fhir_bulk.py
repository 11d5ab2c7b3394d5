"""FHIR Bulk Data export against a server over real HTTP that plays the traps of real ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.sources import Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulkSettings, type_filters
from spinney.errors import SourceFailed
from tests.connectors.fhir.bulk import Puller, bulk_server, observation, read
from tests.servers.fhir_traps import FhirTraps


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with bulk_server() as traps:
        yield traps


@pytest.fixture
def pull(tmp_path: Path) -> Puller:
    return Puller(tmp_path)


def test_an_export_in_several_files_gives_one_file_per_type(server: FhirTraps, pull: Puller) -> None:
    pulled = pull(server)
    assert read(pulled) == server.store["Observation"]
    assert read(pulled, "Patient") == server.store["Patient"]
    assert pulled.newest == datetime(2026, 1, 1, tzinfo=UTC)
    assert pulled.notes == ()
    assert ("Observation", 250, 250) in pull.progress
    assert sorted(path.name for path in pull.staging.iterdir()) == ["Observation.ndjson", "Patient.ndjson"]


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"export": "system"}, "/fhir/$export"),
        ({"export": "patient"}, "/fhir/Patient/$export"),
        ({"export": "group", "group": "ward-7"}, "/fhir/Group/ward-7/$export"),
    ],
)
def test_system_patient_and_group_exports_are_asked_for_asynchronously(
    server: FhirTraps, pull: Puller, settings: dict[str, Any], path: str
) -> None:
    pull(server, **settings)
    (asked,) = server.asked("$export")
    assert asked.path == path
    assert asked.headers["prefer"] == "respond-async"
    assert asked.query["_type"] == ["Patient,Observation"]


def test_the_export_is_deleted_afterwards(server: FhirTraps, pull: Puller) -> None:
    pull(server)
    assert server.exports == {}


def test_links_that_have_expired_lead_to_a_new_export_once(server: FhirTraps, pull: Puller) -> None:
    server.expired_links = 1
    assert read(pull(server)) == server.store["Observation"]
    assert len(server.asked("$export")) == 2
    server.expired_links = 99
    with pytest.raises(SourceFailed, match="export file of Patient: nothing is there"):
        pull(server)
    assert len(server.asked("$export")) == 4


def test_error_files_are_reported_as_counts_without_their_texts(server: FhirTraps, pull: Puller) -> None:
    server.errors = [
        {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "diagnostics": "Jane Doe"}]},
        {"resourceType": "OperationOutcome", "issue": [{"severity": "error"}, {"severity": "warning"}]},
    ]
    assert pull(server).notes == ("the server reports trouble with its export: 2 error, 1 warning",)


def test_every_file_of_the_export_is_told_with_what_it_holds(server: FhirTraps, pull: Puller) -> None:
    held = pull(server).held
    assert held == {
        "output-00000 (Patient)": {"Patient": 3},
        "output-00001 (Observation)": {"Observation": 100},
        "output-00002 (Observation)": {"Observation": 100},
        "output-00003 (Observation)": {"Observation": 50},
    }


@pytest.mark.parametrize("told", ["ExportObservation", "observation", ""])
def test_what_a_file_holds_is_told_by_its_content_and_not_by_the_manifest(
    server: FhirTraps, pull: Puller, told: str
) -> None:
    server.calls = {"Observation": told}
    pulled = pull(server)
    assert read(pulled) == server.store["Observation"]
    assert pulled.held[f"output-00001 ({told or 'no type told'})"] == {"Observation": 100}


def test_a_file_that_nobody_asked_for_is_named_and_not_fetched(server: FhirTraps, pull: Puller) -> None:
    server.calls = {"Observation": "Group"}
    pulled = pull(server)
    assert "the export has Group, too, which nobody asked for: not fetched" in pulled.notes
    assert pulled.held["output-00001 (Group)"] == {}
    assert not any("/files/e1/Observation" in one.path for one in server.requests)


def test_the_studys_codes_are_asked_for_and_a_server_that_cannot_filter_sends_all(
    server: FhirTraps, pull: Puller
) -> None:
    wanted = Wanted("Observation", ("http://loinc.org|8302-2", "http://loinc.org|4548-4"))
    assert pull(server, wanted).notes == ()
    (sent,) = server.asked("$export")[0].query["_typeFilter"]
    assert sent == "Observation?combo-code=http%3A%2F%2Floinc.org%7C4548-4%2Chttp%3A%2F%2Floinc.org%7C8302-2"
    server.type_filter = False
    assert pull(server, wanted).notes == ("the server does not accept _typeFilter, so all codes were read",)


def test_a_type_of_which_one_feature_wants_everything_is_not_filtered() -> None:
    declared = {"Observation": frozenset({"combo-code"})}
    assert type_filters([Wanted("Observation", ("a|b",)), Wanted("Observation")], declared) == []


def test_the_second_night_brings_only_what_changed_and_gives_the_whole(server: FhirTraps, pull: Puller) -> None:
    pull(server, store=True)
    server.transaction_time = "2026-01-02T00:00:00.000Z"
    server.put(observation(7, "2026-01-01T12:00:00Z", status="amended"))
    server.put(observation(900, "2026-01-01T12:00:00Z"))
    del server.store["Observation"]["o8"]
    server.deleted = ["Observation/o8"]
    pulled = pull(server, store=True)
    assert read(pulled) == server.store["Observation"]
    assert read(pulled, "Patient") == server.store["Patient"]
    assert server.asked("$export")[1].query["_since"] == ["2026-01-01T00:00:00.000Z"]
    assert [one.path for one in server.requests if "/e2/Obs" in one.path] == ["/files/e2/Observation/0"]
    assert pulled.notes == ()
    server.deleted = None
    pull(server, store=True)
    assert server.asked("$export")[2].query["_since"] == ["2026-01-02T00:00:00.000Z"]


def test_a_server_that_does_not_tell_of_deletions_is_named(server: FhirTraps, pull: Puller) -> None:
    pull(server, store=True)
    assert pull(server, store=True).notes == (
        "the server does not tell of deletions; they show at the full export every 7 days",
    )


def test_a_server_that_refuses_since_is_read_anew(server: FhirTraps, pull: Puller) -> None:
    pull(server, store=True)
    server.since = False
    del server.store["Observation"]["o8"]
    pulled = pull(server, store=True)
    assert read(pulled) == server.store["Observation"]
    assert pulled.notes == ("the server does not accept _since, so everything was read",)


def test_groups_are_exported_whole_every_night(server: FhirTraps, pull: Puller) -> None:
    for _ in range(2):
        pull(server, store=True, export="group", group="ward-7")
    assert "_since" not in server.asked("$export")[1].query


def test_a_group_needs_an_id() -> None:
    with pytest.raises(ValueError, match="group belongs to export: group"):
        FhirBulkSettings(base_url="https://fhir.example.org", export="group")
