"""FHIR Bulk Data export against a server over real HTTP that plays the traps of real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import Pulled, Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulk, FhirBulkSettings, type_filters
from spinney.errors import SourceFailed
from tests.servers.fhir_traps import FhirTraps, Stumble

BOTH = (Wanted("Patient"), Wanted("Observation"))


def observation(number: int, updated: str = "2025-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    code = {"coding": [{"system": "http://loinc.org", "code": "8302-2"}]}
    meta = {"lastUpdated": updated}
    return {"resourceType": "Observation", "id": f"o{number}", "meta": meta, "code": code, **more}


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    patients = [{"resourceType": "Patient", "id": f"p{n}"} for n in range(3)]
    with FhirTraps([*patients, *(observation(n) for n in range(250))], lines_per_file=100) as traps:
        yield traps


class Puller:
    """Pulls night after night with one store, and remembers how long it would have waited."""

    def __init__(self, folder: Path) -> None:
        self.staging, self.store = folder / "staging", folder / "store"
        self.staging.mkdir()
        self.waits: list[float] = []
        self.progress: list[tuple[str, int, int | None]] = []

    def __call__(self, server: FhirTraps, *wanted: Wanted, store: bool = False, **settings: Any) -> Pulled:
        chosen = FhirBulkSettings(**{"base_url": server.base_url, **settings})
        source = FhirBulk(chosen, self.store if store else None, partial(connect, sleep=self.waits.append))
        return source.pull(wanted or BOTH, self.staging, lambda *seen: self.progress.append(seen))


@pytest.fixture
def pull(tmp_path: Path) -> Puller:
    return Puller(tmp_path)


def read(pulled: Pulled, kind: str = "Observation") -> dict[str, Any]:
    lines = [json.loads(line) for path in pulled.files[kind] for line in path.read_text().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines) == pulled.read[kind]
    return {line["id"]: line for line in lines}


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


def test_polling_waits_as_long_as_the_server_wishes(server: FhirTraps, pull: Puller) -> None:
    server.polls, server.poll_after = 3, "20"
    pull(server)
    assert pull.waits == [20.0, 20.0, 20.0]
    assert pull.progress[0] == ("export", 50, 100)


def test_the_export_is_deleted_afterwards(server: FhirTraps, pull: Puller) -> None:
    pull(server)
    assert server.exports == {}


def test_an_export_that_cannot_be_deleted_is_only_noted(server: FhirTraps, pull: Puller) -> None:
    server.deletable = False
    assert pull(server, attempts=1).notes == (
        "the server did not delete the export; it may keep the files until they expire",
    )


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_breaks_half_way_is_continued_or_begun_again(
    server: FhirTraps, pull: Puller, ranges: bool
) -> None:
    server.cut_after, server.cuts_per_file, server.ranges = 2000, 2, ranges
    assert read(pull(server)) == server.store["Observation"]
    begun = [one.headers.get("range") for one in server.asked("/Observation/0")]
    assert begun == [None, "bytes=2000-", "bytes=4000-" if ranges else "bytes=2000-"]


def test_a_long_file_may_break_more_often_than_there_are_attempts_while_it_grows(
    server: FhirTraps, pull: Puller
) -> None:
    server.cut_after, server.cuts_per_file = 1000, 8
    assert read(pull(server, attempts=3)) == server.store["Observation"]


def test_a_download_that_never_gets_further_fails(server: FhirTraps, pull: Puller) -> None:
    server.cut_after, server.cuts_per_file, server.ranges = 1000, 99, False
    with pytest.raises(SourceFailed, match="export file of Observation: the connection broke"):
        pull(server)


def test_a_restarted_process_goes_on_with_the_same_export(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/Observation/100", 503, times=2)]
    server.cut_after = 2000
    with pytest.raises(SourceFailed, match="HTTP 503"):
        pull(server, attempts=2)
    assert read(pull(server)) == server.store["Observation"]
    assert len(server.asked("$export")) == 1
    assert [one.headers.get("range") for one in server.asked("/Observation/0")] == [None, "bytes=2000-"]


def test_a_process_restarted_while_the_server_still_works_goes_on_polling(server: FhirTraps, pull: Puller) -> None:
    server.polls, server.poll_after = 10, "300"
    with pytest.raises(SourceFailed, match="deadline_hours"):
        pull(server, deadline_hours=0.01)
    server.poll_after = "1"
    pull(server)
    assert len(server.asked("$export")) == 1


def test_files_of_an_unknown_export_are_not_continued(server: FhirTraps, pull: Puller) -> None:
    (pull.staging / "part-output-00001.ndjson").write_text('{"resourceType": "Observation", "id": "stale"}\n')
    (pull.staging / "export.json").write_text("{ half a fi")
    assert read(pull(server)) == server.store["Observation"]
    assert all("range" not in one.headers for one in server.requests)


def test_an_export_that_the_server_gave_up_is_begun_anew_by_the_next_run(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/exports/", 500)]
    with pytest.raises(SourceFailed, match="export status: the server fails"):
        pull(server, attempts=1)
    pull(server)
    assert len(server.asked("$export")) == 2


def test_a_restarted_process_that_wants_something_else_begins_anew(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/files/", 503, times=1)]
    with pytest.raises(SourceFailed):
        pull(server, attempts=1)
    pull(server, Wanted("Patient"))
    assert len(server.asked("$export")) == 2


def test_links_that_have_expired_lead_to_a_new_export_once(server: FhirTraps, pull: Puller) -> None:
    server.expired_links = 1
    assert read(pull(server)) == server.store["Observation"]
    assert len(server.asked("$export")) == 2
    server.expired_links = 99
    with pytest.raises(SourceFailed, match="export file of Patient: nothing is there"):
        pull(server)
    assert len(server.asked("$export")) == 4


def test_a_count_that_disagrees_with_the_manifest_fails_with_both_numbers(server: FhirTraps, pull: Puller) -> None:
    server.wrong_count = True
    with pytest.raises(SourceFailed, match="file of Patient is incomplete: 3 lines read, but the manifest counts 4"):
        pull(server)


@pytest.mark.parametrize("counted", [True, False])
def test_a_file_that_ends_early_without_an_error_is_fetched_again(
    server: FhirTraps, pull: Puller, counted: bool
) -> None:
    server.silent_cut, server.counted = True, counted
    assert read(pull(server)) == server.store["Observation"]


def test_a_line_that_stays_truncated_goes_on_to_quarantine_and_the_night_goes_on(
    server: FhirTraps, pull: Puller
) -> None:
    server.truncated = True
    pulled = pull(server)
    lines = pulled.files["Observation"][0].read_bytes().splitlines()
    assert len(lines) == pulled.read["Observation"] == 250
    broken = [line for line in lines if not line.endswith(b"}")]
    assert len(broken) == 3  # one per file


def test_error_files_are_reported_as_counts_without_their_texts(server: FhirTraps, pull: Puller) -> None:
    server.errors = [
        {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "diagnostics": "Jane Doe"}]},
        {"resourceType": "OperationOutcome", "issue": [{"severity": "error"}, {"severity": "warning"}]},
    ]
    assert pull(server).notes == ("the server reports trouble with its export: 2 error, 1 warning",)


def test_a_token_goes_to_the_files_only_where_the_manifest_asks_for_it(
    server: FhirTraps, pull: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIS_TOKEN", "t0ken")
    auth = {"kind": "bearer", "token_env": "HIS_TOKEN"}
    pull(server, auth=auth)
    assert all("authorization" not in one.headers for one in server.asked("/Observation/0"))
    server.needs_token = True
    pull(server, auth=auth)
    assert server.asked("/Observation/0")[-1].headers["authorization"] == "Bearer t0ken"


def test_a_token_does_not_follow_files_to_another_host(server: FhirTraps, pull: Puller) -> None:
    server.needs_token, server.files_host = True, "http://files.example.org"
    with pytest.raises(SourceFailed, match=r"is on files\.example\.org, and a token is not sent there"):
        pull(server)


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


def test_a_server_without_transaction_time_is_read_anew_every_night(server: FhirTraps, pull: Puller) -> None:
    server.tells_time = False
    assert pull(server, store=True).notes == ("the export has no transactionTime, so the next one is a full one again",)
    pull(server, store=True)
    assert "_since" not in server.asked("$export")[1].query


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"wanted": Wanted("Observation", ("a|b",))}, {"wanted": Wanted("Observation", ("a|b", "a|c"))}),
        (
            {"wanted": Wanted("Observation", (), datetime(2020, 1, 1, tzinfo=UTC))},
            {"wanted": Wanted("Observation", (), datetime(2019, 1, 1, tzinfo=UTC))},
        ),
        ({"wanted": Wanted("Patient")}, {"wanted": Wanted("Observation")}),
        ({"wanted": Wanted("Patient")}, {"wanted": Wanted("Patient"), "export": "system"}),
        ({"wanted": Wanted("Patient")}, {"wanted": Wanted("Patient"), "rebuild_days": 1e-9}),
    ],
)
def test_a_store_that_lacks_what_is_wanted_or_is_too_old_is_built_anew(
    server: FhirTraps, pull: Puller, first: dict[str, Any], second: dict[str, Any]
) -> None:
    for night in (first, second):
        pull(server, night.pop("wanted"), store=True, **night)
    assert "_since" not in server.asked("$export")[1].query


def test_a_store_that_holds_more_than_is_wanted_is_used(server: FhirTraps, pull: Puller) -> None:
    pull(server, Wanted("Observation", ("a|b", "a|c"), datetime(2019, 1, 1, tzinfo=UTC)), store=True)
    pull(server, Wanted("Observation", ("a|b",), datetime(2020, 1, 1, tzinfo=UTC)), store=True)
    assert "_since" in server.asked("$export")[1].query


def test_groups_are_exported_whole_every_night(server: FhirTraps, pull: Puller) -> None:
    for _ in range(2):
        pull(server, store=True, export="group", group="ward-7")
    assert "_since" not in server.asked("$export")[1].query


def test_a_night_that_dies_half_way_leaves_the_store_as_it_was(server: FhirTraps, pull: Puller) -> None:
    pull(server, store=True)
    before = (pull.store / "store.json").read_text()
    server.stumbles = [Stumble("/files/", 503, times=1)]
    server.put(observation(900, "2026-01-01T12:00:00Z"))
    with pytest.raises(SourceFailed):
        pull(server, store=True, attempts=1)
    assert (pull.store / "store.json").read_text() == before
    assert read(pull(server, store=True)) == server.store["Observation"]


def test_what_is_kept_is_readable_by_its_owner_alone(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/files/", 503, times=1)]
    with pytest.raises(SourceFailed):
        pull(server, store=True, attempts=1)
    assert (pull.staging / "export.json").stat().st_mode & 0o077 == 0
    pull(server, store=True)
    for path in (pull.store, pull.store / "store.json", pull.store / "a"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_group_needs_an_id() -> None:
    with pytest.raises(ValueError, match="group belongs to export: group"):
        FhirBulkSettings(base_url="https://fhir.example.org", export="group")
