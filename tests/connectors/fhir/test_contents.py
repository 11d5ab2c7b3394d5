"""What a file of FHIR resources holds: its lines tell, however it is called, packed or laid out."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.fhir import contents
from spinney.connectors.fhir.contents import NO_RESOURCE, contents_of, may_hold_resources, unpacked
from spinney.errors import SourceFailed
from tests.made_up import observation, patient

ANN, WEIGHT = patient("ann"), observation("2023-01-01", 1.0)
BUNDLE = {"resourceType": "Bundle", "entry": [{"resource": ANN}, {"resource": WEIGHT}]}


def of(folder: Path, text: str, name: str = "data.ndjson") -> contents.Contents:
    (folder / name).write_text(text)
    return contents_of(folder / name)


def lines(*resources: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in resources)


def test_lines_of_one_type_are_counted_and_can_stay_where_they_are(tmp_path: Path) -> None:
    found = of(tmp_path, lines(WEIGHT, WEIGHT, WEIGHT))
    assert (found.holds, found.only) == ({"Observation": 3}, "Observation")
    assert of(tmp_path, lines(WEIGHT, WEIGHT).rstrip("\n")).holds == {"Observation": 2}


@pytest.mark.parametrize("block", [1, 7, 64, 1000, 2**20])
def test_one_line_of_another_type_is_found_wherever_a_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(contents, "BLOCK", block)
    found = of(tmp_path, lines(*[WEIGHT] * 30, ANN, *[WEIGHT] * 30))
    assert (found.holds, found.only) == ({"Observation": 60, "Patient": 1}, None)
    assert of(tmp_path, lines(*[WEIGHT] * 30)).holds == {"Observation": 30}


def test_a_type_that_does_not_come_first_blank_lines_and_broken_lines_are_counted_one_by_one(tmp_path: Path) -> None:
    late = {"id": "x", "resourceType": "Observation"}
    found = of(tmp_path, f'{lines(late)}\n{{"resourceType": "Obs\n{{}}\n{lines(late)}')
    assert (found.holds, found.only) == ({"Observation": 2, NO_RESOURCE: 2}, "Observation")


@pytest.mark.parametrize("name", ["data.json", "data.ndjson"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_bundle_is_told_by_what_is_in_it(tmp_path: Path, name: str, indent: int | None) -> None:
    found = of(tmp_path, json.dumps(BUNDLE, indent=indent), name)
    assert (found.holds, found.only) == ({"Patient": 1, "Observation": 1}, None)
    assert [one.kind for one in unpacked(tmp_path / name)] == ["Patient", "Observation"]


def test_a_bundle_in_every_line_is_told_by_what_is_in_them(tmp_path: Path) -> None:
    assert of(tmp_path, lines(BUNDLE, BUNDLE)).holds == {"Patient": 2, "Observation": 2}
    assert len(list(unpacked(tmp_path / "data.ndjson"))) == 4


def test_lines_in_a_file_that_is_called_a_bundle_are_lines(tmp_path: Path) -> None:
    assert of(tmp_path, lines(WEIGHT, WEIGHT), "data.json").only == "Observation"


def test_a_list_of_resources_is_unpacked(tmp_path: Path) -> None:
    found = of(tmp_path, json.dumps([ANN, WEIGHT], indent=1), "data.json")
    assert found.holds == {"Patient": 1, "Observation": 1}


def test_what_is_no_json_is_no_resource_and_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert of(tmp_path, "dear colleague").holds == {NO_RESOURCE: 1}
    assert of(tmp_path, "").holds == {}


@pytest.mark.parametrize(("name", "packed"), [("a.ndjson", True), ("a.ndjson.gz", False)])
def test_a_file_whose_name_is_wrong_about_packing_is_read_but_not_where_it_is(
    tmp_path: Path, name: str, packed: bool
) -> None:
    content = lines(ANN, ANN).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    contents = contents_of(tmp_path / name)
    assert (contents.holds, contents.only) == ({"Patient": 2}, None)
    assert len(list(unpacked(tmp_path / name))) == 2


def test_a_mark_of_the_byte_order_costs_no_first_line(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(codecs.BOM_UTF8 + lines(ANN, ANN).encode())
    contents = contents_of(tmp_path / "a.ndjson")
    assert (contents.holds, contents.only) == ({"Patient": 2}, None)
    assert [json.loads(one.line)["resourceType"] for one in unpacked(tmp_path / "a.ndjson")] == ["Patient", "Patient"]


@pytest.mark.parametrize("content", [lines(ANN), json.dumps([ANN], indent=1), "\ufeff" + lines(ANN)])
def test_resources_are_known_by_how_a_file_begins(tmp_path: Path, content: str) -> None:
    (tmp_path / "export").write_text(content)
    (tmp_path / "log").write_text("[2024-01-01] started\n")
    (tmp_path / "half.tgz").write_bytes(gzip.compress(content.encode())[:-9])
    assert [one.name for one in sorted(tmp_path.iterdir()) if may_hold_resources(one)] == ["export"]


def test_a_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(lines(ANN).encode())[:-9])
    with pytest.raises(SourceFailed, match=r"a\.ndjson\.gz can't be read; is it whole\?"):
        contents_of(tmp_path / "a.ndjson.gz")
