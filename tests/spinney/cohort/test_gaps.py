"""What a site has nothing of keeps it out until its people accept it by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spinney.cohort.accepted import Accepted
from spinney.cohort.gaps import gaps
from spinney.connectors.great_expectations.quality import QualityReport
from spinney.errors import CohortRejected
from tests.connectors.great_expectations.contract import ROWS, STUDY, Counts, first, table

NOTHING = Accepted()
ZERO: list[Any] = [0.0] * ROWS
MISSING: list[Any] = [None] * ROWS


def told(
    accepted: Accepted = NOTHING, counts: Counts | None = None, before: Any = None, **changed: Any
) -> QualityReport:
    return QualityReport(tuple(gaps(table(**changed), before, STUDY, counts or Counts(), accepted)))


def failed(report: QualityReport) -> list[str]:
    return [one.rule for one in report.failures("critical")]


def test_a_site_that_has_something_of_everything_takes_part() -> None:
    told().require()
    assert {one.checked for one in told().results} == {1, len(STUDY.features)}


@pytest.mark.parametrize(
    ("changed", "rule", "line"),
    [
        ({"smoker": ZERO}, "smoker has values", 'accepted: {empty: ["smoker"]}'),
        ({"pulse": MISSING}, "pulse has values", 'accepted: {empty: ["pulse"]}'),
        ({"pulse": first(ZERO, *[None] * 50)}, "pulse has values", 'accepted: {empty: ["pulse"]}'),
        ({"sex": MISSING}, "sex has values", 'accepted: {empty: ["sex"]}'),
        ({"sex": ["female"] * ROWS}, "sex differs between rows", 'accepted: {constant: ["sex"]}'),
        ({"pulse": [80.0] * ROWS}, "pulse differs between rows", 'accepted: {constant: ["pulse"]}'),
        (
            {"pulse": first([80.0] * ROWS, *[None] * 50)},
            "pulse differs between rows",
            'accepted: {constant: ["pulse"]}',
        ),
    ],
)
def test_an_empty_or_constant_column_is_an_error_that_says_what_to_write(
    changed: dict[str, Any], rule: str, line: str
) -> None:
    assert failed(told(**changed)) == [rule]
    with pytest.raises(CohortRejected, match=rf"{rule} \({ROWS} failed\)") as error:
        told(**changed).require()
    assert str(error.value).endswith(f"where that is right here, write in site.yaml: {line}")


def test_a_few_equal_values_say_nothing_about_a_column() -> None:
    assert failed(told(pulse=first([None] * ROWS, *[80.0] * 9))) == []
    assert failed(told(pulse=first([None] * ROWS, *[80.0] * 10))) == ["pulse differs between rows"]


def test_a_column_that_the_site_lacks_is_empty() -> None:
    report = QualityReport(tuple(gaps(table().drop_columns(["pulse"]), None, STUDY, Counts(), NOTHING)))
    assert failed(report) == ["pulse has values"]


def test_a_feature_that_nobody_has_since_the_last_cohort_is_said_to_have_fallen() -> None:
    assert failed(told(before=table(), smoker=ZERO)) == ["smoker has values, as in the last cohort"]
    assert failed(told(before=table(smoker=MISSING), smoker=ZERO)) == ["smoker has values"]


def test_a_type_of_which_nothing_can_be_used_is_an_error_and_one_that_loses_some_is_none() -> None:
    refused = Counts(read=Counter(Condition=5051, Observation=9), usable={"Condition": 0, "Observation": 1})
    assert failed(told(counts=refused)) == ["Condition: something can be used"]
    with pytest.raises(CohortRejected, match=r'accepted: \{refused: \["Condition"\]\}'):
        told(counts=refused).require()


def test_what_is_accepted_by_name_is_no_error_and_says_that_it_is_accepted() -> None:
    refused = Counts(read=Counter(Condition=5051), usable={"Condition": 0})
    said = Accepted(refused=("Condition",), empty=("smok*",), constant=("sex",))
    report = told(said, refused, smoker=ZERO, sex=["male"] * ROWS)
    report.require()
    assert [one.rule for one in report.results] == [
        f"{rule} (site.yaml accepts that it is not so)"
        for rule in ("Condition: something can be used", "smoker has values", "sex differs between rows")
    ]


def test_to_accept_one_thing_accepts_no_other() -> None:
    assert failed(told(Accepted(constant=("smoker",), empty=("sex",)), smoker=ZERO, sex=["male"] * ROWS)) == [
        "smoker has values",
        "sex differs between rows",
    ]


def test_what_is_accepted_and_there_again_is_a_warning() -> None:
    assert [one.rule for one in told(Accepted(empty=("smoker",))).failures("warning")] == [
        "smoker is empty, as site.yaml accepts; take it out there"
    ]


def test_the_error_names_everything_that_can_be_accepted_at_once() -> None:
    refused = Counts(read=Counter(Condition=5051), usable={"Condition": 0})
    with pytest.raises(CohortRejected) as error:
        told(counts=refused, smoker=ZERO, pulse=MISSING, sex=["male"] * ROWS).require()
    assert 'accepted: {refused: ["Condition"], empty: ["pulse", "smoker"], constant: ["sex"]}' in str(error.value)
