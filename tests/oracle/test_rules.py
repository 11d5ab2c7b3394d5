"""Populations with rules: the records that are compared tell each rule from its absence, and from its mistakes."""

from __future__ import annotations

from functools import cache

import pytest

from tests.oracle import coverage, group_records, seeds
from tests.oracle.coverage import covered_case_of
from tests.oracle.group_records import group_case_of
from tests.oracle.records import FhirCase
from tests.oracle.reference import Expected
from tests.oracle.row_records import RowCase
from tests.oracle.rules import FAULTS, case_of


@cache
def cases() -> list[tuple[FhirCase | RowCase, Expected]]:
    made = [case_of(seed) for seed in seeds.RULES]
    return [(case, case.told()) for case in made]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_rule_that_is_applied_wrongly_makes_a_table_differ(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cases()
    FAULTS[fault](monkeypatch)
    assert any(case.told() != right for case, right in whole)


@cache
def of_groups() -> list[tuple[FhirCase | RowCase, Expected]]:
    made = [group_case_of(seed) for seed in seeds.GROUPS]
    return [(case, case.told()) for case in made]


@pytest.mark.parametrize("fault", group_records.FAULTS)
def test_members_that_are_found_wrongly_make_a_table_differ(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_groups()
    group_records.FAULTS[fault](monkeypatch)
    assert any(case.told() != right for case, right in whole)


@pytest.mark.parametrize("fault", coverage.FAULTS)
def test_a_break_that_is_not_seen_makes_a_table_differ(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [(case, case.told()) for case in map(covered_case_of, seeds.COVERAGE)]
    coverage.FAULTS[fault](monkeypatch)
    assert any(case.told() != right for case, right in whole)


def test_most_groups_have_somebody_in_them() -> None:
    assert sum(bool(group_case_of(seed).told().ripe) for seed in range(60)) > 40


def test_most_populations_have_somebody_in_them() -> None:
    assert sum(bool(case_of(seed).told().ripe) for seed in range(60)) > 40
