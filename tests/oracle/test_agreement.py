"""Spinney's cohort and the slow reference agree, value by value, over the same nasty records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle import seeds
from tests.oracle.agreement import differences
from tests.oracle.coverage import covered_case_of
from tests.oracle.finished import finished_case
from tests.oracle.group_records import group_case_of
from tests.oracle.omop_records import omop_case
from tests.oracle.records import Records
from tests.oracle.row_records import RowRecords
from tests.oracle.rules import case_of


@pytest.mark.parametrize("seed", seeds.RESOURCES)
def test_resources_give_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(Records(seed).case(), tmp_path) == []


@pytest.mark.parametrize("seed", seeds.ROWS)
def test_rows_of_queries_give_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(RowRecords(seed).row_case(), tmp_path) == []


@pytest.mark.parametrize("seed", seeds.RULES)
def test_a_population_with_rules_has_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(case_of(seed), tmp_path) == []


@pytest.mark.parametrize("seed", seeds.GROUPS)
def test_members_of_groups_are_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(group_case_of(seed), tmp_path) == []


@pytest.mark.parametrize("seed", seeds.COVERAGE)
def test_who_was_in_sight_without_a_break_is_a_row_as_in_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(covered_case_of(seed), tmp_path) == []


@pytest.mark.parametrize("seed", seeds.OMOP)
def test_a_database_of_omop_gives_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(omop_case(seed), tmp_path) == []


@pytest.mark.parametrize("seed", seeds.FINISHED)
def test_a_finished_table_gives_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(finished_case(seed), tmp_path) == []
