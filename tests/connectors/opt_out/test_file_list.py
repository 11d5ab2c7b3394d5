"""A list in a file: what it says, and that a list in which something is wrong stops the pull."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.opt_out.file_list import FileList
from spinney.connectors.opt_out.identifiers import Named
from spinney.connectors.opt_out.lists import ListContent, Place
from spinney.errors import SourceFailed


def said(folder: Path, content: str | bytes, name: str = "opt-out.txt", **how: Any) -> ListContent:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return FileList(path=path, **how).read(Place(folder, datetime.now(UTC)))


def exact(*values: str, system: str = "") -> frozenset[Named]:
    return frozenset(Named(system, "exact", value) for value in values)


def test_a_text_file_has_an_identifier_per_line(tmp_path: Path) -> None:
    found = said(tmp_path, '\ufeff# those who have said no\r\n1\r\n\r\n  Patient/2 \r\n"3"\r\n2\r\n')
    assert found == ListContent(objects=exact("1", "2", "3"), entries=3)


def test_a_table_has_them_in_a_column(tmp_path: Path) -> None:
    table = 'name;number\n"a; b";07\nc;08\n'
    assert said(tmp_path, table, "list.csv", column="number").objects == exact("07", "08")
    assert said(tmp_path, gzip.compress(table.encode()), "list.csv.gz", column="number").objects == exact("07", "08")


def test_a_list_of_a_system_is_one_of_that_system(tmp_path: Path) -> None:
    assert said(tmp_path, "7\n", system="urn:mrn").objects == exact("7", system="urn:mrn")


def test_a_list_of_consents_names_those_who_agree(tmp_path: Path) -> None:
    assert said(tmp_path, "7\n", means="consent") == ListContent(agrees=exact("7"), entries=1)


def test_an_empty_file_is_a_list_with_nobody_on_it(tmp_path: Path) -> None:
    assert said(tmp_path, "# nobody\n") == ListContent()


@pytest.mark.parametrize(
    ("content", "name", "how", "words"),
    [
        (
            "1,Quibblewick\n",
            "l.txt",
            {},
            "line 1 holds more than one identifier; write one per line, or say in `column`",
        ),
        ("1\n943 476\n", "l.txt", {}, "line 2 holds more than one"),
        (b"\xff\xfe1\x00", "l.txt", {}, "is not UTF-8"),
        (b"\x1f\x8bhalf", "l.csv.gz", {"column": "a"}, "can't be read"),
        ("a,b\n1,2\n3\n", "l.csv", {"column": "b"}, "line 3 has 1 cells instead of 2; is it whole"),
        ("a,b\n1,2\n,\n", "l.csv", {"column": "b"}, "line 3 is no identifier"),
        ("a,b\n1,2\n", "l.csv", {"column": "c"}, "has no column c; it has a, b"),
        ("Smith\n", "l.txt", {"compare": "digits"}, "line 1 has no digits"),
    ],
)
def test_a_list_in_which_something_is_wrong_stops_the_pull_and_nothing_is_quoted(
    tmp_path: Path, content: str | bytes, name: str, how: dict[str, Any], words: str
) -> None:
    with pytest.raises(SourceFailed, match=words) as error:
        said(tmp_path, content, name, **how)
    assert "Quibblewick" not in str(error.value)
    assert "476" not in str(error.value)


def test_a_list_that_is_not_there_stops_the_pull(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match=r"the list nowhere\.txt can't be read \(No such file"):
        FileList(path=tmp_path / "nowhere.txt").read(Place(tmp_path, datetime.now(UTC)))


def test_a_relative_path_is_below_site_yaml(tmp_path: Path) -> None:
    assert FileList(path=Path("a.txt")).anchored(tmp_path) == FileList(path=tmp_path / "a.txt")
