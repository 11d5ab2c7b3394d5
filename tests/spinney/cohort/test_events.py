"""What is in a file and what is in quarantine: one bad record never kills a night."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from spinney.cohort.events import ROW_GROUP, Staged, stage
from spinney.connectors.duck import open_bench
from spinney.connectors.sources import Pulled
from spinney.errors import SourceFailed
from tests.made_up import coded, observation, patient, staged

GOOD = observation("2023-01-01T10:00:00Z", 70.0)
OTHER = observation("2023-01-03T10:00:00Z", 70.0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (json.dumps(OTHER)[:100], "not a FHIR resource"),
        ("[1, 2]", "not a FHIR resource"),
        ('{"id": "x"}', "not a FHIR resource"),
        (patient(), "another resource type"),
        ({key: value for key, value in OTHER.items() if key != "id"}, "no id"),
        ({key: value for key, value in OTHER.items() if key != "subject"}, "no subject"),
        (OTHER | {"subject": {"reference": "Group/7"}}, "no subject"),
        (OTHER | {"subject": "Patient/ann"}, "no subject"),
        ({key: value for key, value in OTHER.items() if key != "effectiveDateTime"}, "no date"),
        (OTHER | {"effectiveDateTime": "2023-02-30"}, "broken date"),
        (OTHER | {"effectiveDateTime": "yesterday"}, "broken date"),
        (OTHER | {"effectiveDateTime": "infinity"}, "broken date"),
        (OTHER | {"issued": "2023-13-01T00:00:00Z"}, "broken date"),
        (OTHER | {"valueQuantity": {"value": "seventy", "code": "kg"}}, "value is not a number"),
        (OTHER | {"valueQuantity": {"value": "NaN", "code": "kg"}}, "value is not a number"),
    ],
)
def test_a_bad_resource_goes_to_quarantine_with_its_reason_and_the_others_go_on(
    tmp_path: Path, line: Any, reason: str
) -> None:
    result, events = staged(tmp_path, GOOD, line, observation("2023-01-02", 71.0))
    assert result.quarantined == {("Observation", reason): 1}
    assert result.read == {"Observation": 3}
    assert [row[5] for row in events] == [70.0, 71.0]


def test_lines_that_are_cut_off_are_lost_one_by_one_and_counted(tmp_path: Path) -> None:
    result, events = staged(tmp_path, GOOD, json.dumps(OTHER)[:90], json.dumps(OTHER)[:-20], "")
    assert result.quarantined == {("Observation", "not a FHIR resource"): 2}
    assert len(events) == 1


def test_a_patient_with_a_broken_date_of_birth_is_in_quarantine(tmp_path: Path) -> None:
    result, people = staged(tmp_path, patient("ann"), patient("bob", "1960-99-99"), kind="Patient")
    assert result.quarantined == {("Patient", "broken date"): 1}
    assert [row[0] for row in people] == ["ann"]


@pytest.mark.parametrize(
    ("written", "timezone", "read"),
    [
        ("2023-01-01T10:00:00-05:00", "UTC", "2023-01-01 15:00:00"),
        ("2023-01-01T10:00:00.139Z", "UTC", "2023-01-01 10:00:00.139000"),
        ("2023-07-01T10:00:00", "Europe/Berlin", "2023-07-01 08:00:00"),
        ("2023-07-01", "Europe/Berlin", "2023-06-30 22:00:00"),
        ("2023-07", "UTC", "2023-07-01 00:00:00"),
        ("2023", "UTC", "2023-01-01 00:00:00"),
        ("1582-10-10", "UTC", "1582-10-10 00:00:00"),
        ("1969-12-31T23:59:59.999999Z", "UTC", "1969-12-31 23:59:59.999999"),
        ("9999-12-31T23:59:59+14:00", "UTC", "9999-12-31 09:59:59"),
    ],
)
def test_times_are_read_to_utc_and_partial_dates_begin_their_period(
    tmp_path: Path, written: str, timezone: str, read: str
) -> None:
    _, events = staged(tmp_path, GOOD | {"effectiveDateTime": written}, timezone=timezone)
    assert str(events[0][2]) == read


def test_a_date_of_birth_does_not_move_with_the_time_zone(tmp_path: Path) -> None:
    _, people = staged(tmp_path, patient(birth="1960-05-17"), kind="Patient", timezone="Pacific/Auckland")
    assert str(people[0][1]) == "1960-05-17"


@pytest.mark.parametrize(
    "reference", ["Patient/ann", "https://fhir.example.org/r4/Patient/ann", "Patient/ann/_history/3", "urn:uuid:ann"]
)
def test_a_patient_is_the_same_however_a_resource_refers_to_them(tmp_path: Path, reference: str) -> None:
    _, events = staged(tmp_path, GOOD | {"subject": {"reference": reference}})
    assert events[0][0] == "ann"


def test_every_coding_and_every_component_is_a_row(tmp_path: Path) -> None:
    both = {"coding": [{"system": "a", "code": "1"}, {"code": "2"}]}
    piece = {"code": coded("b|3"), "valueQuantity": {"value": 5, "unit": "kg"}}
    _, events = staged(tmp_path, GOOD | {"code": both, "component": [piece, {"code": coded("b|4")}]})
    assert [(row[1], row[5], row[7]) for row in events] == [
        ("a|1", 70.0, "kg"),
        ("|2", 70.0, "kg"),
        ("b|3", 5.0, "kg"),
        ("b|4", None, None),
    ]


@pytest.mark.parametrize(
    ("value", "number", "words"),
    [
        ({"valueInteger": 3}, 3.0, None),
        ({"valueBoolean": True}, 1.0, None),
        ({"valueString": "some"}, None, "some"),
        ({"valueCodeableConcept": {"coding": [{"system": "sct", "code": "9"}], "text": "nine"}}, None, "sct|9"),
        ({"valueCodeableConcept": {"text": "nine"}}, None, "nine"),
    ],
)
def test_values_of_all_kinds_are_read(tmp_path: Path, value: Any, number: float | None, words: str | None) -> None:
    _, events = staged(tmp_path, observation("2023-01-01", **value))
    assert events[0][5:7] == (number, words)


def test_a_resource_that_several_files_hold_is_used_once_in_its_newest_version(tmp_path: Path) -> None:
    old = GOOD | {"meta": {"lastUpdated": "2023-01-01T00:00:00Z"}}
    new = GOOD | {"meta": {"lastUpdated": "2023-03-01T00:00:00Z"}, "valueQuantity": {"value": 75, "code": "kg"}}
    other = observation("2023-01-05", 60.0)
    result, events = staged(tmp_path, new, old, other, other, new)
    assert sorted(row[5] for row in events) == [60.0, 75.0]
    assert result.read == {"Observation": 2}


def rows_of(folder: Path, *rows: dict[str, Any], kind: str = "Condition") -> tuple[Staged, list[dict[str, Any]]]:
    """What becomes of rows as a database yields them."""
    file = folder / f"{kind}.parquet"
    parquet.write_table(pa.Table.from_pylist([{key: None for row in rows for key in row} | row for row in rows]), file)
    with open_bench(folder) as bench:
        result = stage(bench, Pulled({kind: (file,)}), folder)
    found = parquet.read_table(result.events[kind]).to_pylist()
    return result, [row for row in found if row["reason"] is None]


ROW = {"patient": "ann", "code": "a|1", "time": "2023-01-05"}


def test_rows_without_an_identity_are_an_event_each_however_equal(tmp_path: Path) -> None:
    _, events = rows_of(tmp_path, ROW, ROW)
    assert len({row["event"] for row in events}) == 2


def test_rows_of_one_identity_are_one_event_with_several_codes_and_repetitions_go(tmp_path: Path) -> None:
    row = ROW | {"event": "7"}
    _, events = rows_of(tmp_path, row, row | {"code": "b|2"}, row, ROW | {"event": "8"})
    assert len({row["event"] for row in events}) == 2
    assert sorted(row["code"] for row in events) == ["a|1", "a|1", "b|2"]


def test_of_rows_that_were_written_anew_the_newest_count(tmp_path: Path) -> None:
    old = ROW | {"event": "7", "updated": "2023-01-06T00:00:00Z"}
    _, events = rows_of(tmp_path, old, old | {"code": "b|2"}, old | {"updated": "2023-02-01", "code": "c|3"})
    assert [row["code"] for row in events] == ["c|3"]


def test_rows_of_one_event_that_contradict_one_another_go_to_quarantine(tmp_path: Path) -> None:
    row = ROW | {"event": "7"}
    result, events = rows_of(tmp_path, row, row | {"time": "2023-01-09"}, ROW)
    assert result.quarantined == {("Condition", "rows of one event differ"): 1}
    assert len(events) == 1


def test_the_encounters_of_a_database_are_tied_together_by_their_identity(tmp_path: Path) -> None:
    _, stays = rows_of(tmp_path, ROW | {"event": "7", "parent": None}, ROW | {"event": "8", "parent": "7"})
    by_parent = {row["parent"] is None: row for row in stays}
    assert by_parent[False]["parent"] == by_parent[True]["event"]


def test_gzipped_and_plain_files_of_one_kind_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text(json.dumps(GOOD))
    with gzip.open(tmp_path / "b.ndjson.gz", "wt") as file:
        file.write(json.dumps(observation("2023-01-05", 60.0)))
    with open_bench(tmp_path) as bench:
        files = (tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz")
        assert stage(bench, Pulled({"Observation": files}), tmp_path).read == {"Observation": 2}


def test_a_file_that_is_no_gzip_is_named_and_not_quoted(tmp_path: Path) -> None:
    broken = tmp_path / "Observation.ndjson.gz"
    broken.write_bytes(b"CANARY is not gzip")
    with open_bench(tmp_path) as bench, pytest.raises(SourceFailed, match="Observation") as failed:
        stage(bench, Pulled({"Observation": (broken,)}), tmp_path)
    assert "CANARY" not in str(failed.value)


@pytest.mark.parametrize(
    ("said", "counts_as"),
    [
        ("2024-01-10", ("2024-01-10 00:00:00", True)),
        ("2024-01-10T00:00:00Z", ("2024-01-10 00:00:00", False)),
        ("2024-01", ("None", False)),
        ("2024", ("None", False)),
    ],
)
def test_a_death_is_known_to_the_day_or_to_the_moment_and_a_month_is_no_date(
    tmp_path: Path, said: str, counts_as: tuple[str, bool]
) -> None:
    _, rows = staged(tmp_path, {"resourceType": "Patient", "id": "a", "deceasedDateTime": said}, kind="Patient")
    assert (str(rows[0][3]), rows[0][4]) == counts_as


def test_a_day_ends_with_the_clock_of_the_hospital_also_where_it_is_put_forward_or_back(tmp_path: Path) -> None:
    with open_bench(tmp_path, "Europe/Berlin") as bench:
        ends = [
            str(bench.execute("SELECT known_from(?)", [day]).fetchall()[0][0])
            for day in ("2023-03-26", "2023-10-29", "2023-10", "2023", "2023-10-29T10:00:00Z")
        ]
    assert ends == [
        "2023-03-26 21:59:59.999999",
        "2023-10-29 22:59:59.999999",
        "2023-10-31 22:59:59.999999",
        "2023-12-31 22:59:59.999999",
        "2023-10-29 10:00:00",
    ]


def test_the_events_of_a_small_pull_are_enough_for_several_processors(tmp_path: Path) -> None:
    line = json.dumps(GOOD).replace(GOOD["id"], "{}")
    lines = (line.replace("{}", str(number)) for number in range(2 * ROW_GROUP))
    result, _ = staged(tmp_path, *lines)
    groups = parquet.read_metadata(result.events["Observation"]).num_row_groups
    assert result.read["Observation"] == 2 * ROW_GROUP
    assert groups > 1
