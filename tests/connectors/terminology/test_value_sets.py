"""Value sets mean what the FHIR pages say, as far as files tell; the rest is refused with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spinney.errors import StudyInvalid
from tests.connectors.terminology.sets import (
    ICD,
    OWN,
    SCT,
    by_filter,
    code_system,
    codes,
    concept,
    meaning,
    value_set,
)

A, B = "http://sets.example/a", "http://sets.example/b"
#      heart -> failure -> left, right (inactive); heart -> rhythm -> flutter; lung
HOUSE = code_system(
    concept("heart", concept("failure", concept("left"), concept("right", inactive=True)), organ="h"),
    concept("rhythm", parent="heart", organ="h", weight=3),
    concept("flutter", parent=["rhythm"]),
    concept("lung", organ="l"),
    version="7",
)


def test_listed_codes_are_meant(tmp_path: Path) -> None:
    found = meaning(tmp_path, value_set(A, codes(SCT, "1", "2"), codes(ICD, "I50.1")))
    assert found == {ICD: ("I50.1",), SCT: ("1", "2")}


def test_an_expansion_counts_before_the_definition_and_groups_and_abstract_entries_are_no_codes(tmp_path: Path) -> None:
    inside = [
        {"system": SCT, "code": "2"},
        {"system": SCT, "code": "3", "abstract": True, "contains": [{"system": SCT, "code": "4"}]},
    ]
    expansion = {"total": 5, "contains": [{"system": SCT, "code": "1"}, {"display": "a group", "contains": inside}]}
    assert meaning(tmp_path, value_set(A, codes(SCT, "9"), expansion=expansion)) == {SCT: ("1", "2", "4")}


@pytest.mark.parametrize(
    "cut",
    [
        {"total": 2, "contains": [{"system": SCT, "code": "1"}]},
        {
            "contains": [{"system": SCT, "code": "1"}],
            "extension": [{"url": "http://hl7.org/fhir/StructureDefinition/valueset-toocostly", "valueBoolean": True}],
        },
    ],
)
def test_a_part_of_an_expansion_is_refused(tmp_path: Path, cut: dict[str, Any]) -> None:
    with pytest.raises(StudyInvalid, match="take it whole"):
        meaning(tmp_path, {"resourceType": "ValueSet", "url": A, "expansion": cut})


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("concept", "is-a", "heart")], "failure flutter heart left rhythm right"),
        ([("concept", "descendent-of", "heart")], "failure flutter left rhythm right"),
        ([("concept", "is-not-a", "heart")], "lung"),
        ([("concept", "child-of", "heart")], "failure rhythm"),
        ([("concept", "descendent-leaf", "heart")], "flutter left right"),
        ([("concept", "generalizes", "flutter")], "flutter heart rhythm"),
        ([("concept", "in", "lung, left")], "left lung"),
        ([("concept", "not-in", "heart,failure,left,right,rhythm")], "flutter lung"),
        ([("organ", "=", "h")], "heart rhythm"),
        ([("organ", "exists", "true"), ("concept", "is-a", "heart")], "heart rhythm"),
        ([("organ", "exists", "false")], "failure flutter left right"),
        ([("parent", "=", "heart")], "failure rhythm"),
        ([("weight", "in", "2,3")], "rhythm"),
        ([("inactive", "=", "true")], "right"),
    ],
)
def test_a_filter_means_these_of_a_code_system(
    tmp_path: Path, filters: list[tuple[str, str, str]], expected: str
) -> None:
    assert meaning(tmp_path, value_set(A, by_filter(OWN, *filters)), HOUSE) == {OWN: tuple(expected.split())}


def test_codes_out_of_use_are_left_out_where_the_value_set_says_so(tmp_path: Path) -> None:
    some = value_set(A, by_filter(OWN, ("concept", "is-a", "failure")))
    some["compose"]["inactive"] = False
    assert meaning(tmp_path, some, HOUSE) == {OWN: ("failure", "left")}


def test_what_an_include_says_twice_must_both_hold_and_excludes_are_taken_away(tmp_path: Path) -> None:
    hearts = value_set(B, by_filter(OWN, ("concept", "is-a", "heart")))
    some = value_set(
        A,
        codes(OWN, "left", "lung", "rhythm", valueSet=[B]),
        {"valueSet": [B]},
        exclude=[codes(OWN, "left"), {"valueSet": [B], "system": SCT}],
    )
    assert meaning(tmp_path, some, hearts, HOUSE) == {OWN: ("failure", "flutter", "heart", "rhythm", "right")}


def test_a_whole_system_without_its_file_is_a_star_and_with_it_its_codes(tmp_path: Path) -> None:
    assert meaning(tmp_path, value_set(A, {"system": OWN})) == {OWN: ("*",)}
    assert meaning(tmp_path, value_set(A, {"system": OWN}), code_system(concept("x"), concept("y"))) == {
        OWN: ("x", "y")
    }


def test_icd_and_atc_need_no_file_for_what_is_below_a_code(tmp_path: Path) -> None:
    some = value_set(A, by_filter(ICD, ("concept", "is-a", "I50")), exclude=[codes(SCT, "1")])
    assert meaning(tmp_path, some) == {ICD: ("I50*",)}


def test_a_hole_in_a_beginning_needs_the_code_system(tmp_path: Path) -> None:
    some = value_set(A, by_filter(ICD, ("concept", "is-a", "I50")), exclude=[codes(ICD, "I50.9")])
    with pytest.raises(
        StudyInvalid, match=r"every code that begins so but 'I50.9', which needs the file of its CodeSystem"
    ):
        meaning(tmp_path, some)
    whole = code_system(concept("I50", concept("I50.1"), concept("I50.9")), url=ICD)
    assert meaning(tmp_path, some, whole) == {ICD: ("I50", "I50.1")}


def test_value_sets_that_include_themselves_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match=r"includes itself, by http://sets.example/a and http://sets.example/b"):
        meaning(tmp_path, value_set(A, {"valueSet": [B]}), value_set(B, codes(SCT, "1"), {"valueSet": [A]}))
    with pytest.raises(StudyInvalid, match="includes itself"):
        meaning(tmp_path, value_set(A, {"valueSet": [f"{A}|1"]}))


def test_value_sets_that_fan_out_are_read_once_each(tmp_path: Path) -> None:
    chain = [value_set(f"{A}{n}", {"valueSet": [f"{A}{n + 1}"]}, {"valueSet": [f"{A}{n + 1}"]}) for n in range(60)]
    assert meaning(tmp_path, *chain, value_set(f"{A}60", codes(SCT, "1"))) == {SCT: ("1",)}  # 2^60 ways


def test_value_sets_that_are_nested_too_deep_are_refused(tmp_path: Path) -> None:
    chain = [value_set(f"{A}{n}", {"valueSet": [f"{A}{n + 1}"]}) for n in range(120)]
    with pytest.raises(StudyInvalid, match="more than 100 deep"):
        meaning(tmp_path, *chain, value_set(f"{A}120", codes(SCT, "1")))


@pytest.mark.parametrize(
    ("include", "said"),
    [
        (
            by_filter(OWN, ("concept", "regex", "(a+)+")),
            "can't be answered from files; let a terminology server expand",
        ),
        (by_filter(OWN, ("concept", "guess", "x")), "can't be answered from files"),
        (by_filter(SCT, ("concept", "is-a", "84114007")), "needs the CodeSystem http://snomed.info/sct; add its file"),
        (by_filter(OWN, ("concept", "is-a", "toe")), "has no code toe in its file"),
        (by_filter(OWN, ("concept", "is-a", "heart"), version="8"), "is wanted in version 8, and its file has 7"),
        ({"valueSet": [B]}, "no file has the ValueSet http://sets.example/b"),
        ({"concept": [{"code": "1"}]}, "without a system"),
        ({}, "neither a system nor a ValueSet"),
        ({"system": OWN, "concept": "x"}, "is no list of objects"),
        ({"system": OWN, "concept": [{"code": 1}]}, "has no code"),
        ({"system": ["x"]}, "has no system"),
        ({"system": OWN, "valueSet": "x"}, "is no list of addresses"),
        ({"system": OWN, "concept": [{"code": "1"}], "filter": [{"property": "a"}]}, "either codes or filters"),
        ({"system": OWN, "filter": [{"property": "a"}]}, "a filter has no op"),
        (codes(SCT, "1*"), "codes with a star"),
        (codes(SCT, "1\n2"), "a line end"),
        (codes("a|b", "1"), "another odd sign"),
    ],
)
def test_what_files_can_not_tell_is_refused_with_what_to_do(tmp_path: Path, include: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyInvalid, match=said):
        meaning(tmp_path, value_set(A, include), HOUSE)


def test_a_value_set_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="neither an expansion nor an include"):
        meaning(tmp_path, {"resourceType": "ValueSet", "url": A})
    with pytest.raises(StudyInvalid, match="leave no code"):
        meaning(tmp_path, value_set(A, codes(SCT, "1"), exclude=[codes(SCT, "1")]))
