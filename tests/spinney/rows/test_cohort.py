"""A site's patients as arrays: rows that are chosen stay together with their labels, patients and parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.parts import Part
from spinney.study.study import Study

STUDY = Study.model_validate(
    {
        "name": "wood",
        "features": [
            {"name": "age", "kind": "continuous", "range": [0, 100]},
            {"name": "smoker", "kind": "binary"},
        ],
        "label": {"name": "died"},
        "split": {"newest": 0},
    }
)


def table(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 90, rows).astype(float)
    age[::10] = np.nan
    return pd.DataFrame({"age": age, "smoker": rng.integers(0, 2, rows), "died": rng.integers(0, 2, rows)})


@pytest.fixture
def cohort() -> Cohort:
    return cohort_from_frame(table(), STUDY, [f"p{number // 2}" for number in range(200)])


def test_rows_of_some_parts_are_all_of_them_and_no_others(cohort: Cohort):
    parts = [cohort.rows(part) for part in Part]
    assert sum(map(len, parts)) == len(cohort) == 200
    some = cohort.rows(Part.TRAINING, Part.TEST)
    assert {*some.part.tolist()} == {int(Part.TRAINING), int(Part.TEST)}


def test_chosen_rows_keep_what_belongs_to_them(cohort: Cohort):
    chosen = cohort.where(cohort.y == 1)
    places = np.flatnonzero(cohort.y == 1)
    assert np.array_equal(chosen.X, cohort.X[places], equal_nan=True)
    assert np.array_equal(chosen.patients, cohort.patients[places])
    assert np.array_equal(chosen.part, cohort.part[places])
    assert chosen.columns is cohort.columns


def test_patients_are_counted_and_not_their_rows(cohort: Cohort):
    assert cohort.patient_count == 100
    without, with_one = cohort.patients_by_class()
    healthy, ill = ({*cohort.patients[cohort.y == label].tolist()} for label in (0, 1))
    assert (without, with_one) == (len(healthy), len(ill))


def test_what_is_missing_is_filled_in_a_copy(cohort: Cohort):
    fill = np.array([0.5, np.nan], dtype=np.float32)
    full = cohort.filled(fill)
    assert np.isnan(cohort.X[:, 0]).sum() == 20
    assert np.all(full.X[np.isnan(cohort.X[:, 0]), 0] == 0.5)
    assert full.fill is fill


def test_without_patients_every_row_is_one_of_its_own_and_the_seed_deals_parts():
    one, other = (cohort_from_frame(table(), STUDY) for _ in range(2))
    assert one.patient_count == 200
    assert np.array_equal(one.part, other.part)
    reseeded = STUDY.with_settings(split={"seed": 1})
    assert not np.array_equal(one.part, cohort_from_frame(table(), reseeded).part)


def test_another_key_deals_other_parts_to_the_same_patients():
    names = [f"p{number}" for number in range(200)]
    one, other = (cohort_from_frame(table(), STUDY, names, key).part for key in (b"one", b"other"))
    assert not np.array_equal(one, other)


def test_where_the_study_leaves_newest_rows_open_a_table_without_times_says_why_there_are_none():
    open_study = STUDY.with_settings(split={"newest": None})
    assert cohort_from_frame(table(), open_study).no_newest
    assert cohort_from_frame(table(), STUDY).no_newest == ""
