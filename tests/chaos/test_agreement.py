"""Spinney's cohort and the slow reference agree on two thousand nasty cohorts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracle.agreement import Case, differences
from tests.oracle.coverage import covered_case_of
from tests.oracle.finished import finished_case
from tests.oracle.group_records import group_case_of
from tests.oracle.omop_records import omop_case
from tests.oracle.records import Records
from tests.oracle.row_records import RowRecords
from tests.oracle.rules import case_of

pytestmark = pytest.mark.chaos
MAKERS: dict[str, tuple[Callable[[int], Case], int]] = {
    "resources": (lambda seed: Records(seed).case(), 1_000),
    "rows": (lambda seed: RowRecords(seed).row_case(), 500),
    "rules": (case_of, 300),
    "groups": (group_case_of, 200),
    "coverage": (covered_case_of, 100),
    "finished": (finished_case, 300),
    "omop": (omop_case, 400),
}
BY = 50


@pytest.mark.parametrize(
    ("what", "start"), [(what, start) for what, (_, cohorts) in MAKERS.items() for start in range(0, cohorts, BY)]
)
def test_engine_and_reference_make_the_same_tables(tmp_path: Path, what: str, start: int) -> None:
    make, _ = MAKERS[what]
    wrong = {}
    for seed in range(start, start + BY):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if found := differences(make(seed), folder):
            wrong[seed] = found
    assert wrong == {}
