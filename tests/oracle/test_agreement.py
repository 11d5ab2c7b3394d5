"""Spinney's cohort and the slow reference agree, value by value, over the same nasty records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.agreement import differences
from tests.oracle.finished import finished_case


@pytest.mark.parametrize("seed", range(10))
def test_a_finished_table_gives_the_rows_of_the_reference(tmp_path: Path, seed: int) -> None:
    assert differences(finished_case(seed), tmp_path) == []
