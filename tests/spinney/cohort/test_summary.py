"""What the person at the keyboard sees of each column, and what stays hidden because too few patients are behind it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spinney.cohort.summary import FeatureSummary, summarise
from spinney.study.study import Study

STUDY = Study.model_validate(
    {
        "name": "columns",
        "features": [{"name": "x", "kind": "continuous", "range": [0, 10], "unit": "kg"}],
        "label": {"name": "y"},
        "privacy": {"smallest_leaf": 5},
    }
)


def summary(values: list[Any], patients: list[str] | None = None) -> FeatureSummary:
    whose = patients or [f"p{row}" for row in range(len(values))]
    (found,) = summarise(pa.table({"patient": whose, "x": pa.array(values, pa.float64())}), STUDY)
    return found


def test_filled_missing_and_the_range_of_values_are_shown() -> None:
    values = [None] * 5 + [1.0, 2.0, 3.0, 4.0, 50.0]
    assert summary(values) == FeatureSummary("x", "kg", 5, 5, 1.0, 3.0, 50.0)


@pytest.mark.parametrize("values", [[1.0] * 4 + [None] * 20, [None] * 4 + [1.0] * 20])
def test_a_small_count_hides_its_complement_too(values: list[float | None]) -> None:
    found = summary(values)
    assert (found.filled, found.missing) == (None, None)


def test_many_rows_of_few_patients_are_not_described() -> None:
    found = summary([1.0, 2.0] * 10, ["ann", "bob"] * 10)
    assert (found.filled, found.minimum, found.median, found.maximum) == (20, None, None, None)


def test_a_feature_that_the_site_does_not_have_is_all_missing() -> None:
    (found,) = summarise(pa.table({"patient": ["a", "b"]}), STUDY)
    assert (found.filled, found.missing) == (0, 2)
