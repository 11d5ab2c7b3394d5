"""NDJSON files in which every resource stands once, in its newest version, however they come."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.connectors.fhir import shelf as module
from spinney.connectors.fhir.shelf import Resource, Shelf, from_line, lines_of, microseconds, parse_instant


def resource(id: str, updated: int = 0, kind: str = "Observation", **more: object) -> Resource:
    return Resource(kind, id, updated, json.dumps({"resourceType": kind, "id": id, "v": updated, **more}).encode())


def read(shelf: Shelf, kind: str = "Observation") -> list[tuple[str, int]]:
    files = shelf.close()
    lines = [json.loads(line) for path in files.get(kind, ()) for line in path.read_text().splitlines()]
    return [(line["id"], line["v"]) for line in lines]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), max_size=30))
def test_of_every_resource_the_newest_version_is_left_in_whatever_order_they_come(
    tmp_path_factory: pytest.TempPathFactory, came: list[tuple[str, int]]
):
    newest: dict[str, int] = {}
    for id, version in came:
        newest[id] = max(newest.get(id, 0), version)
    with Shelf(tmp_path_factory.mktemp("shelf")) as shelf:
        for one in came:
            shelf.put(resource(*one))
        assert shelf.counts["Observation"] == len(newest)
        assert sorted(read(shelf)) == sorted(newest.items())


def test_a_resource_counts_once_per_search_that_brings_it(tmp_path: Path):
    with Shelf(tmp_path) as shelf:
        brought = [shelf.put(resource("a"), search) for search in (1, 1, 2, 2)]
    assert brought == [True, False, True, False]


def test_what_was_deleted_does_not_come_back_with_last_night_s(tmp_path: Path):
    with Shelf(tmp_path) as shelf:
        shelf.put(resource("a", 3))
        shelf.bury("Observation", "b")
        for id in "abc":
            shelf.add_older(resource(id, 1))
        assert sorted(read(shelf)) == [("a", 3), ("c", 1)]


def test_types_with_one_id_are_two_resources(tmp_path: Path):
    with Shelf(tmp_path) as shelf:
        assert shelf.put(resource("a"))
        assert shelf.put(resource("a", kind="Patient"))
        assert set(shelf.close()) == {"Observation", "Patient"}


def test_its_index_is_gone_afterwards(tmp_path: Path):
    with Shelf(tmp_path) as shelf:
        shelf.put(resource("a"))
        shelf.touch("Patient")
        shelf.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Observation.ndjson", "Patient.ndjson"]


def test_a_line_that_is_longer_than_any_resource_comes_cut_off_and_the_next_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "LONGEST_LINE", 10)
    (tmp_path / "x").write_bytes(b"short\n\n" + b"x" * 95 + b"\nnext\n")
    assert list(lines_of(tmp_path / "x")) == [b"short", b"x" * 10, b"next"]


@pytest.mark.parametrize("line", [b"not json", b"[1]", b"{}", b'{"id": 7}', b"[" * 50_000])
def test_a_line_that_is_no_resource_is_kept_for_the_parser_to_put_aside(line: bytes):
    kept = from_line(line, "Observation")
    assert (kept.kind, kept.updated, kept.line) == ("Observation", 0, line)
    assert kept.id.startswith("no id ")
    assert from_line(line + b" ", "Observation").id != kept.id


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-01-01T01:39:00.000Z", datetime(2026, 1, 1, 1, 39, tzinfo=UTC)),
        ("2026-01-01T01:39:00+01:00", datetime(2026, 1, 1, 0, 39, tzinfo=UTC)),
        ("2026-01-01T01:39:00", datetime(2026, 1, 1, 1, 39, tzinfo=UTC)),
        ("yesterday", None),
        (None, None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_an_instant_is_one_in_utc_or_none(written: object, read: datetime | None):
    assert parse_instant(written) == read
    assert microseconds(written) == (0 if read is None else round(read.timestamp() * 1e6))
