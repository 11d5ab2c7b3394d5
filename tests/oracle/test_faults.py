"""The generated records are nasty enough: each fault that was there once changes a table of the first fifty cohorts."""

from __future__ import annotations

from functools import cache

import pytest

from tests.oracle import reference
from tests.oracle.agreement import expected
from tests.oracle.faults import FAULTS
from tests.oracle.records import Case, Records

SEEDS = range(50)


@cache
def cases() -> list[tuple[Case, reference.Expected]]:
    made = [Records(seed).case() for seed in SEEDS]
    return [(case, expected(case)) for case in made]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_planted_again_makes_a_table_differ(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cases()
    FAULTS[fault](monkeypatch)
    assert any(expected(case) != right for case, right in whole)


def test_most_cohorts_have_rows_of_both_kinds_and_both_outcomes() -> None:
    found = [told for _, told in cases()]
    assert sum(bool(told.ripe) for told in found) > 45
    outcomes = [row["outcome"] for told in found for row in told.ripe]
    assert 0.05 < sum(outcomes) / len(outcomes) < 0.95
    assert sum(bool(told.still_open) for told in found) > 3
