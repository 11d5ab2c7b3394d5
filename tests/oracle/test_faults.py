"""The records are nasty enough: each fault that was there once changes a table that Spinney's is compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.oracle import omop_records, reference, seeds
from tests.oracle.agreement import Case
from tests.oracle.faults import FAULTS, OF_ROWS, Plant
from tests.oracle.omop_records import omop_case
from tests.oracle.records import Records
from tests.oracle.row_records import RowRecords


@cache
def of_resources() -> list[tuple[Case, reference.Expected]]:
    made = [Records(seed).case() for seed in seeds.RESOURCES]
    return [(case, case.told()) for case in made]


@cache
def of_rows() -> list[tuple[Case, reference.Expected]]:
    made = [RowRecords(seed).row_case() for seed in seeds.ROWS]
    return [(case, case.told()) for case in made]


@cache
def of_omop() -> list[tuple[Case, reference.Expected]]:
    made = [omop_case(seed) for seed in seeds.OMOP]
    return [(case, case.told()) for case in made]


def seen(fault: Plant, whole: list[tuple[Case, reference.Expected]], patch: pytest.MonkeyPatch) -> bool:
    fault(patch)
    return any(case.told() != right for case, right in whole)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_planted_again_makes_a_table_of_resources_differ(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen(FAULTS[fault], of_resources(), monkeypatch)


@pytest.mark.parametrize("fault", OF_ROWS)
def test_a_fault_that_is_planted_again_makes_a_table_of_rows_differ(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen(OF_ROWS[fault], of_rows(), monkeypatch)


@pytest.mark.parametrize("fault", omop_records.FAULTS)
def test_a_database_of_omop_that_is_read_wrongly_makes_a_table_differ(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen(omop_records.FAULTS[fault], of_omop(), monkeypatch)


@pytest.mark.parametrize("make", [lambda seed: Records(seed).case(), lambda seed: RowRecords(seed).row_case()])
def test_most_cohorts_have_rows_of_both_kinds_and_both_outcomes(make: Callable[[int], Case]) -> None:
    found = [make(seed).told() for seed in range(50)]
    assert sum(bool(told.ripe) for told in found) > 40
    outcomes = [row["outcome"] for told in found for row in told.ripe]
    assert 0.05 < sum(outcomes) / len(outcomes) < 0.95
    assert sum(bool(told.still_open) for told in found) > 3
