"""A site is warned where the study cuts finer than it records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spinney.cohort.record_steps import finer_than_recorded
from spinney.study.study import Study

YEARS = np.arange(20, 90).repeat(3).astype(float)


def told(values, **words):
    age = {"name": "age", "kind": "continuous", "range": [18, 110], **words}
    study = Study.model_validate({"name": "wood", "features": [age], "label": {"name": "died"}})
    return [(one.rule, one.passed) for one in finer_than_recorded(pa.table({"age": values}), study)]


def test_whole_years_under_cuts_that_know_nothing_of_them_are_a_warning_that_says_what_to_write():
    assert told(YEARS) == [
        ("age: cut in steps of 2 or more, because it is recorded in steps of 1 (`resolution` in the study)", False)
    ]


@pytest.mark.parametrize("words", [{"resolution": 1}, {"cuts": [40, 65]}, {"most_cuts": 20}])
def test_cuts_two_recorded_steps_apart_are_none(words):
    assert told(YEARS, **words) == [("no feature is cut finer than it is recorded", True)]


def test_tenths_of_a_millimole_are_found_behind_their_conversion():
    values = np.arange(20, 90).repeat(3) * 0.1 * 18.0156
    assert "recorded in steps of 1.80156" in told(values, most_cuts=60)[0][0]


@pytest.mark.parametrize(
    "values", [np.random.default_rng(0).random(500), np.zeros(50), np.arange(5.0), np.full(0, 1.0)]
)
def test_of_measured_numbers_constants_and_few_values_nothing_is_said(values):
    assert told(values) == [("no feature is cut finer than it is recorded", True)]
