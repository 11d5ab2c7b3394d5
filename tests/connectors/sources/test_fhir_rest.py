"""FHIR REST against a server over real HTTP that plays the traps of real ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from spinney.connectors.sources import TABLE, Pulled, Wanted
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from spinney.errors import SourceFailed
from tests.connectors.fhir.rest import LOINC, OBSERVATIONS, Puller, observation
from tests.servers.fhir_traps import FhirTraps


def ids(pulled: Pulled, kind: str = "Observation") -> list[str]:
    return sorted(json.loads(line)["id"] for path in pulled.files[kind] for line in path.read_text().splitlines())


def test_all_pages_are_read_and_every_resource_stands_once_in_the_file(server: FhirTraps, pull: Puller) -> None:
    pulled = pull(server, [Wanted("Observation"), Wanted("Patient")])
    assert ids(pulled) == sorted(f"o{n}" for n in range(100))
    assert pulled.read == {"Observation": 100, "Patient": 3}
    assert pulled.newest == datetime(2026, 1, 1, 1, 39, tzinfo=UTC)
    assert pulled.notes == ()
    assert pull.progress[0] == ("Observation", 10, 100)
    assert [path.name for path in sorted(pull.staging.iterdir())] == ["Observation.ndjson", "Patient.ndjson"]


def test_what_is_written_is_what_the_server_has(server: FhirTraps, pull: Puller) -> None:
    server.put(observation(7, valueQuantity={"value": 134.8, "unit": "cm"}, note=[{"text": "Größe 🌳"}]))
    lines = pull(server).files["Observation"][0].read_text().splitlines()
    assert {one["id"]: one for one in map(json.loads, lines)} == server.store["Observation"]


def test_a_kind_without_any_resource_gives_an_empty_file(server: FhirTraps, pull: Puller) -> None:
    pulled = pull(server, [Wanted("Procedure")])
    assert pulled.read == {"Procedure": 0}
    assert pulled.files["Procedure"][0].read_bytes() == b""


def test_sorting_by_last_update_gets_past_the_end_of_unsorted_paging(server: FhirTraps, pull: Puller) -> None:
    server.most_unsorted = 50
    assert len(ids(pull(server))) == 100
    assert server.asked("/Observation")[0].query["_sort"] == ["_lastUpdated"]


def test_a_next_link_that_answers_400_fails_the_pull_with_both_numbers(server: FhirTraps, pull: Puller) -> None:
    server.next_fails_at = 70
    with pytest.raises(SourceFailed, match=r"Observation stopped at page 8: .*HTTP 400.*70 of 100 were read"):
        pull(server)


def test_a_next_link_to_another_host_is_refused_before_the_token_goes_there(server: FhirTraps, pull: Puller) -> None:
    with FhirTraps() as elsewhere:
        server.next_host = elsewhere.origin
        with pytest.raises(SourceFailed, match="not below base_url"):
            pull(server)
        assert elsewhere.requests == []


def test_pages_that_go_in_a_circle_are_noticed(server: FhirTraps, pull: Puller) -> None:
    server.next_circles = True
    with pytest.raises(SourceFailed, match="go in a circle; 10 were read"):
        pull(server)


def test_a_total_that_disagrees_fails_the_pull_with_both_numbers(server: FhirTraps, pull: Puller) -> None:
    server.miscounts_by = 7
    with pytest.raises(SourceFailed, match="Observation is incomplete: 100 read, but the server counts 107"):
        pull(server)


@pytest.mark.parametrize("told", [{"tells_totals": False}, {"counts": False}])
def test_either_way_of_counting_is_enough(server: FhirTraps, pull: Puller, told: dict[str, bool]) -> None:
    vars(server).update(told)
    assert pull(server).notes == ()
    server.miscounts_by = 1
    with pytest.raises(SourceFailed, match="100 read, but the server counts 101"):
        pull(server)


def test_a_server_that_never_counts_is_named_in_the_report(server: FhirTraps, pull: Puller) -> None:
    server.tells_totals = server.counts = False
    pulled = pull(server)
    assert pulled.read == {"Observation": 100}
    assert pulled.notes == ("Observation: the server tells no total, so completeness could not be checked",)


def test_included_resources_that_repeat_over_pages_are_kept_once_and_not_counted(
    server: FhirTraps, pull: Puller
) -> None:
    server.includes = True
    pulled = pull(server, [Wanted("Observation"), Wanted("Patient")])
    assert pulled.read == {"Observation": 100, "Patient": 3}
    assert ids(pulled, "Patient") == ["p0", "p1", "p2"]


def test_an_included_resource_of_the_searched_type_is_not_taken_for_a_match(server: FhirTraps, pull: Puller) -> None:
    server.includes = True
    server.put(observation(500, "4548-4", hasMember=[{"reference": "Observation/o1"}]))
    assert ids(pull(server, [Wanted("Observation", (f"{LOINC}|4548-4",))])) == ["o1", "o500"]


def test_included_resources_that_nobody_wants_are_not_written(server: FhirTraps, pull: Puller) -> None:
    server.includes = True
    assert set(pull(server).files) == {"Observation"}


def test_what_arrives_while_reading_is_read_too(server: FhirTraps, pull: Puller) -> None:
    server.late = [observation(200 + n) for n in range(11)]  # the last one after the last page
    pulled = pull(server)
    assert pulled.read == {"Observation": 111}
    assert pulled.notes == ()
    again = [one.query for one in server.asked("/Observation") if not {"_summary", "_offset"} & set(one.query)]
    assert [query.get("_lastUpdated") for query in again] == [None, ["ge2026-01-01T03:29:00.000Z"]]


def test_a_row_skipped_because_another_moved_is_found_by_reading_again(server: FhirTraps, pull: Puller) -> None:
    server.pages_by_offset, server.updates = True, ["o3"]
    pulled = pull(server)
    assert ids(pulled) == sorted(f"o{n}" for n in range(100))
    assert pulled.notes == ()


def test_of_two_versions_the_newest_stays(server: FhirTraps, pull: Puller) -> None:
    server.updates = ["o3"]
    pulled = pull(server)
    lines = [json.loads(line) for line in pulled.files["Observation"][0].read_text().splitlines()]
    assert [one["meta"]["lastUpdated"] for one in lines if one["id"] == "o3"] == ["2026-06-01T00:00:00Z"]
    assert len(lines) == 100


def test_a_count_that_keeps_moving_is_told_and_does_not_kill_the_night(server: FhirTraps, pull: Puller) -> None:
    server.tells_totals = False
    busy = (observation(300 + n) for n in range(1000))

    def another(*_: object) -> None:
        server.put({**next(busy), "meta": {"lastUpdated": "2020-01-01T00:00:00Z"}})

    settings = FhirRestSettings(base_url=server.base_url, page_size=200)
    pulled = FhirRest(settings).pull(OBSERVATIONS, pull.staging, another)
    assert pulled.notes[0].startswith("Observation: changed while it was read (")


def test_a_resource_that_two_searches_find_is_kept_once(server: FhirTraps, pull: Puller) -> None:
    both = [{"system": LOINC, "code": "1"}, {"system": LOINC, "code": "2"}]
    server.put({**observation(500), "code": {"coding": both}})
    wanted = [Wanted("Observation", (f"{LOINC}|1",)), Wanted("Observation", (f"{LOINC}|2",))]
    assert pull(server, wanted).read == {"Observation": 1}


def test_a_study_that_wants_a_finished_table_is_told_so(server: FhirTraps, pull: Puller) -> None:
    with pytest.raises(SourceFailed, match="needs a finished table"):
        pull(server, [Wanted(TABLE)])
