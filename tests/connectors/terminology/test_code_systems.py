"""Code systems as sets, and as hierarchies."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.errors import StudyInvalid
from tests.connectors.terminology.sets import OWN, code_system, concept, meaning

TREE = code_system(
    concept("a", concept("b", concept("c"))), concept("d", child="e"), concept("e"), concept("f", parent="e")
)


def test_a_code_system_alone_means_all_its_codes(tmp_path: Path) -> None:
    assert meaning(tmp_path, TREE) == {OWN: tuple("abcdef")}


@pytest.mark.parametrize(("top", "expected"), [("a", "abc"), ("b", "bc"), ("d", "def"), ("e", "ef"), ("f", "f")])
def test_nested_concepts_parents_and_children_say_what_is_below(tmp_path: Path, top: str, expected: str) -> None:
    assert meaning(tmp_path, TREE, below=(f"{OWN}|{top}",)) == {OWN: tuple(expected)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"content": "fragment"}, "is not complete in its file"),
        ({"content": "supplement"}, "only adds to another"),
        ({"url": None}, "the CodeSystem has no url"),
        ({"concept": [{"code": ""}]}, "a concept has no code"),
        ({"concept": {"code": "a"}}, "is no list of objects"),
    ],
)
def test_a_code_system_that_does_not_tell_all_its_codes_is_no_set(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(StudyInvalid, match=said):
        meaning(tmp_path, TREE | changes)


def test_a_fragment_still_says_what_is_below_the_codes_that_it_has(tmp_path: Path) -> None:
    assert meaning(tmp_path, TREE | {"content": "fragment"}, below=(f"{OWN}|b",)) == {OWN: ("b", "c")}


@pytest.mark.parametrize(
    ("changes", "top", "said"),
    [
        ({}, "z", "has no code z in its file"),
        ({"hierarchyMeaning": "part-of"}, "a", "is a part of it, not a kind of it"),
        ({"concept": [concept("a", parent="b"), concept("b", parent="a")]}, "a", "goes in a circle"),
    ],
)
def test_a_hierarchy_that_does_not_tell_is_refused(
    tmp_path: Path, changes: dict[str, object], top: str, said: str
) -> None:
    with pytest.raises(StudyInvalid, match=said):
        meaning(tmp_path, TREE | changes, below=(f"{OWN}|{top}",))


def test_a_code_system_in_two_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="two of its files have the code system"):
        meaning(tmp_path, TREE, TREE)
