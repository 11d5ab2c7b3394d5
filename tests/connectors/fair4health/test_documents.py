"""JSON with its lines, whoever wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.connectors.fair4health.documents import Block, blocks, member_objects, member_text, read_fair4health, shown
from spinney.errors import StudyInvalid

ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner, max_size=4),
    max_leaves=20,
)


def read(folder: Path, text: str) -> Any:
    file = folder / "document.json"
    file.write_text(text, encoding="utf-8")
    return read_fair4health(file)


@given(content=some.dictionaries(some.text(), ANYTHING, min_size=1), indent=some.sampled_from([0, 2, "\t"]))
def test_every_member_stands_where_its_name_stands(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any], indent: Any
) -> None:
    text = json.dumps(content, indent=indent)
    found = read(tmp_path_factory.getbasetemp(), text)
    assert found == content
    lines = text.split("\n")
    for block in blocks(found):
        assert "{" in lines[block.line - 1]
        for name in block:
            assert lines[block.line_of(name) - 1].lstrip().startswith(json.dumps(name) + ":")


def test_words_in_a_text_and_a_colon_in_the_next_line_move_no_line(tmp_path: Path) -> None:
    found = read(tmp_path, '{"a": "x { } \\" [ :",\n"b"\n\n: 1,\n"c": {"d": []}}')
    assert [found.line_of(name) for name in "abc"] == [1, 2, 5]
    assert found["c"].line_of("d") == 5
    assert found.line_of("nothing") == found.line == 1


def test_objects_come_in_the_order_in_which_they_begin(tmp_path: Path) -> None:
    found = read(tmp_path, '[{"n": 1, "inner": [{"n": 2}, {"n": 3}]}, {"n": 4}]')
    assert [one["n"] for one in blocks(found)] == [1, 2, 3, 4]


def test_what_is_of_another_type_than_it_should_be_is_not_there(tmp_path: Path) -> None:
    found = read(tmp_path, '{"a": [1, {}], "b": {}, "c": 4}')
    assert [len(member_objects(found, name)) for name in "abcd"] == [1, 0, 0, 0]
    assert [member_text(found, name) for name in "cd"] == ["", ""]


def test_words_from_outside_are_shown_without_what_a_terminal_obeys() -> None:
    assert shown("a\x1b[2Jb\ud800\nc" + "d" * 100, 12) == "a [2Jb  cddd"


@pytest.mark.parametrize("text", ["", "{", '{"a": {"b": 1}, "c', '{"a": 1} {"b": 2}', "[" * 100_000, '"\\ud800" {}'])
def test_what_is_no_json_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(StudyInvalid, match="not JSON"):
        read(tmp_path, text)


def test_a_file_of_another_encoding_or_size_or_none_at_all_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"name": "K\xf6ln"}')
    with pytest.raises(StudyInvalid, match="not JSON"):
        read_fair4health(tmp_path / "latin.json")
    with pytest.raises(StudyInvalid, match="cannot be read"):
        read_fair4health(tmp_path / "nowhere.json")
    monkeypatch.setattr("spinney.connectors.fair4health.documents.LARGEST_FILE", 10)
    with pytest.raises(StudyInvalid, match="larger than 0 MB"):
        read_fair4health(tmp_path / "latin.json")


def test_a_block_is_a_dictionary() -> None:
    assert Block([("a", 1)], (3, {"a": 4})) == {"a": 1}
