"""What a site says about its patients, and when it says nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from spinney.cohort import cohort_from_frame
from spinney.describe import characteristic_vector, rounded_rows, vector_names
from spinney.errors import Declined
from spinney.settings import Privacy
from spinney.study import Study

STUDY = Study.model_validate(
    {
        "name": "wood",
        "features": [
            {"name": "age", "kind": "continuous", "range": [0, 100]},
            {"name": "smoker", "kind": "binary"},
            {"name": "stage", "kind": "categorical", "categories": ["early", "late"]},
        ],
        "label": {"name": "died"},
    }
)
PRIVACY = Privacy(smallest_cohort=30)


def cohort(rows=60, patients=None, **columns):
    """Ages 0, 1, 2..., every third a smoker, every fourth late."""
    place = np.arange(rows)
    stage = np.where(place % 4 == 0, "late", "early")
    table = pd.DataFrame({"age": place, "smoker": place % 3 == 0, "stage": stage, "died": place % 2}).assign(**columns)
    return cohort_from_frame(table.dropna(axis="columns", how="all"), STUDY, patients)


def test_it_is_the_mean_of_each_scaled_feature_and_the_share_of_each_category():
    assert characteristic_vector(cohort(), PRIVACY).tolist() == [0.295, 0.333, 0.75, 0.25]
    assert vector_names(cohort()) == ("age", "smoker", "stage=early", "stage=late")


def test_missing_values_leave_the_mean_and_its_divisor():
    age = np.where(np.arange(60) < 40, 10.0, np.nan)
    assert characteristic_vector(cohort(age=age), PRIVACY)[0] == 0.1


def test_a_feature_that_the_site_does_not_have_has_no_number():
    vector = characteristic_vector(cohort(stage=None), PRIVACY)
    assert np.isnan(vector).tolist() == [False, False, True, True]


def test_a_site_below_the_smallest_cohort_declines_with_the_count():
    assert characteristic_vector(cohort(30), PRIVACY).shape == (4,)
    with pytest.raises(Declined, match="29 patients are fewer than the study's smallest cohort of 30"):
        characteristic_vector(cohort(29), PRIVACY)


def test_the_smallest_cohort_counts_patients_and_not_rows():
    with pytest.raises(Declined, match="20 patients"):
        characteristic_vector(cohort(60, [f"p{row // 3}" for row in range(60)]), PRIVACY)


def test_a_feature_known_of_too_few_patients_has_no_number_however_many_rows_they_have():
    patients = ["frequent"] * 40 + [f"p{row}" for row in range(40)]
    age = np.where(np.arange(80) < 40, 77.0, np.nan)
    vector = characteristic_vector(cohort(80, patients, age=age), PRIVACY)
    assert np.isnan(vector).tolist() == [True, False, False, False]


def test_where_asked_the_shares_of_missing_values_follow():
    age = np.where(np.arange(60) < 45, 10.0, np.nan)
    some = cohort(age=age)
    assert characteristic_vector(some, PRIVACY, missing_rates=True)[4:].tolist() == [0.25, 0, 0]
    assert vector_names(some, missing_rates=True)[4:] == ("age missing", "smoker missing", "stage missing")


@pytest.mark.parametrize(("rows", "told"), [(0, 0), (4, 0), (6, 10), (123, 120), (126, 130)])
def test_the_number_of_rows_is_rounded(rows, told):
    assert rounded_rows(rows, PRIVACY) == told
