"""The study's contract: every rule catches what it is for, says how often, and never which value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spinney.connectors.great_expectations.quality import QualityReport, RuleResult, check_table
from spinney.errors import CohortRejected
from tests.connectors.great_expectations.contract import GOOD, ROWS, STUDY, Counts, first, table

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


def failures(report: QualityReport) -> set[tuple[str, str, int, int]]:
    return {(one.severity, one.rule, one.failed, one.checked) for one in report.results if not one.passed}


def test_a_good_table_keeps_every_rule_and_may_take_part() -> None:
    report = check_table(table(), STUDY, Counts())
    assert failures(report) == set()
    report.require()
    assert {"diastolic below systolic", "adults"} <= {one.rule for one in report.results}


PRESSURE = "systolic is between 50 and 250 mm[Hg]"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"systolic": first(GOOD["systolic"], 999.0, 251.0)}, {("warning", PRESSURE, 2, 60)}),
        (
            {"systolic": [one / 7.5 for one in GOOD["systolic"]], "diastolic": [None] * ROWS},  # kPa
            {("warning", PRESSURE, 60, 60), ("critical", f"at least half of {PRESSURE}", 60, 60)},
        ),
        ({"sex": first(GOOD["sex"], "unknown")}, {("warning", "sex is one of female, male", 1, 60)}),
        ({"smoker": first(GOOD["smoker"], 0.5)}, {("warning", "smoker is one of 0, 1", 1, 60)}),
        (
            {"pulse": first(GOOD["pulse"], *[None] * 7)},
            {("warning", "pulse is missing in at most 10% of the rows", 7, 60)},
        ),
        ({"diastolic": first(GOOD["diastolic"], 149.0)}, {("warning", "diastolic below systolic", 1, 60)}),
        ({"diastolic": first(GOOD["diastolic"], None)}, set()),
        ({"pulse": [80.0] * ROWS}, {("warning", "pulse is not 80", 60, 60)}),
        ({"age": first(GOOD["age"], 17.0)}, {("critical", "adults", 1, 60)}),
        ({"died": [0] * ROWS}, {("critical", "died is yes in some rows and no in others", 60, 60)}),
        ({"died": first(GOOD["died"], None)}, {("critical", "died is known", 1, 60)}),
        (
            {"patient": first(GOOD["patient"], "p1"), "index_time": first(GOOD["index_time"], GOOD["index_time"][1])},
            {("warning", "no index event of a patient twice", 2, 60)},
        ),
        ({"index_time": [None] * ROWS}, set()),
    ],
)
def test_a_broken_rule_is_reported_with_how_many_rows_break_it(
    changed: dict[str, list[Any]], expected: set[tuple[str, str, int, int]]
) -> None:
    assert failures(check_table(table(**changed), STUDY)) == expected


def test_a_column_of_words_where_the_study_says_numbers_is_critical() -> None:
    report = check_table(table(pulse=["fast"] * ROWS), STUDY)
    assert ("critical", "pulse is a number", 60, 60) in failures(report)


def test_a_feature_that_the_site_does_not_have_is_a_warning_and_a_label_is_critical() -> None:
    assert failures(check_table(table().drop_columns(["pulse"]), STUDY)) == {
        ("warning", "every feature is a column", 1, 6)
    }
    assert failures(check_table(table().drop_columns(["died"]), STUDY)) == {
        ("critical", "patient, index_time, died are columns", 1, 3)
    }


def test_too_much_in_quarantine_keeps_a_site_out() -> None:
    aside = Counter({("Observation", "broken date"): 15, ("Observation", "unknown unit"): 6})
    assert failures(check_table(table(), STUDY, Counts(quarantined=aside))) == {
        ("critical", "at most 2% of what was read is in quarantine", 21, 1000),
        ("warning", "values have units that can be converted", 6, 1000),
    }


def test_a_critical_failure_is_an_error_with_rule_and_count_and_a_warning_is_none() -> None:
    QualityReport((RuleResult("odd", "warning", 10, 9, False),)).require()
    report = QualityReport(
        (RuleResult("adults", "critical", 60, 3, False), RuleResult("labels", "critical", 60, 2, False))
    )
    with pytest.raises(CohortRejected, match=r"adults \(3 failed\): also labels \(2 failed\)") as caught:
        report.require()
    assert (caught.value.rule, caught.value.failed) == ("adults", 3)
