"""One export from kick-off to files: waited for, fetched whole, and gone on with by a restarted process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.connectors.sources import Wanted
from spinney.errors import SourceFailed
from tests.connectors.fhir.bulk import Puller, bulk_server, read
from tests.servers.fhir_traps import FhirTraps, Stumble


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with bulk_server() as traps:
        yield traps


@pytest.fixture
def pull(tmp_path: Path) -> Puller:
    return Puller(tmp_path)


def test_polling_waits_as_long_as_the_server_wishes(server: FhirTraps, pull: Puller) -> None:
    server.polls, server.poll_after = 3, "20"
    pull(server)
    assert pull.waits == [20.0, 20.0, 20.0]
    assert pull.progress[0] == ("export", 50, 100)


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
