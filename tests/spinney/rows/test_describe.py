"""The characteristic vector: means, shares and, if asked for, missing rates; never of too few patients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from spinney.errors import Declined
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.describe import characteristic_vector, vector_names
from spinney.study.study import Study

STUDY = Study.model_validate(
    {
        "name": "vector",
        "features": [
            {"name": "age", "kind": "continuous", "range": [0, 100]},
            {"name": "ward", "kind": "categorical", "categories": ["east", "west"]},
            {"name": "rare", "kind": "binary"},
        ],
        "label": {"name": "died"},
        "privacy": {"smallest_cohort": 20},
    }
)


def cohort(rows: int = 40) -> Cohort:
    frame = pd.DataFrame(
        {
            "age": np.linspace(20, 80, rows),
            "ward": (["east"] * 3 + [None]) * (rows // 4),
            "rare": [1.0] * 10 + [np.nan] * (rows - 10),
            "died": [0, 1] * (rows // 2),
        }
    )
    return cohort_from_frame(frame, STUDY)


def test_means_are_scaled_by_the_studys_ranges_and_categories_are_shares_of_the_known() -> None:
    vector = characteristic_vector(cohort(), STUDY.privacy)
    np.testing.assert_array_equal(vector, [0.5, 1.0, 0.0, np.nan])  # too few are known to be rare


def test_missing_rates_follow_as_an_option_one_per_feature() -> None:
    there = cohort()
    privacy = STUDY.privacy.model_copy(update={"missing_rates": True})
    rates = dict(zip(vector_names(there, privacy), characteristic_vector(there, privacy), strict=True))
    assert list(rates) == ["age", "ward=east", "ward=west", "rare", "age missing", "ward missing", "rare missing"]
    assert [rates[name] for name in list(rates)[4:]] == [0.0, 0.25, 0.75]


def test_the_share_of_outcomes_is_told_where_the_study_says_so_and_never_of_a_handful() -> None:
    there, privacy = cohort(), STUDY.privacy.model_copy(update={"label_rate": True})
    assert (
        dict(zip(vector_names(there, privacy), characteristic_vector(there, privacy), strict=True))["the outcome"]
        == 0.5
    )
    few = replace(there, y=(np.arange(40) < 4).astype(np.int8))
    assert characteristic_vector(few, privacy)[-1] == 0.0
    assert characteristic_vector(replace(there, y=1 - few.y), privacy)[-1] == 1.0
    assert len(characteristic_vector(there, STUDY.privacy)) == 4


@pytest.mark.parametrize("missing_rates", [False, True])
def test_below_the_smallest_cohort_a_site_says_nothing(missing_rates: bool) -> None:
    with pytest.raises(Declined, match="16 training patients are fewer than the study's smallest cohort of 20"):
        characteristic_vector(cohort(16), STUDY.privacy, missing_rates)


def test_a_share_of_a_handful_of_patients_is_told_as_nobody_and_of_all_but_a_handful_as_everybody() -> None:
    rows = 60
    frame = pd.DataFrame(
        {
            "age": np.linspace(20, 80, rows),
            "ward": ["west"] * 4 + ["east"] * (rows - 4),
            "rare": [1.0] * 5 + [0.0] * (rows - 5),
            "died": [0, 1] * (rows // 2),
        }
    )
    _, east, west, rare = characteristic_vector(cohort_from_frame(frame, STUDY), STUDY.privacy)
    assert (east, west) == (1.0, 0.0)  # among those with enough patients, so that nothing is left to subtract
    assert rare == pytest.approx(5 / 60, abs=0.001)


def test_a_rare_category_can_not_be_subtracted_back() -> None:
    wards = {"name": "ward", "kind": "categorical", "categories": ["a", "b", "rare"]}
    study = Study.model_validate({"name": "s", "features": [wards], "label": {"name": "died"}})
    frame = pd.DataFrame({"ward": ["a"] * 40 + ["b"] * 19 + ["rare"], "died": [0, 1] * 30})
    vector = characteristic_vector(cohort_from_frame(frame, study), study.privacy)
    np.testing.assert_allclose(vector, [0.678, 0.322, 0.0])
    assert vector.sum() == pytest.approx(1.0)


def test_a_number_that_only_a_handful_have_is_not_in_the_mean() -> None:
    episodes = {"name": "episodes", "kind": "continuous", "range": [0, 10]}
    study = Study.model_validate({"name": "s", "features": [episodes], "label": {"name": "died"}})
    frame = pd.DataFrame({"episodes": [0] * 56 + [9] * 4, "died": [0, 1] * 30})
    assert characteristic_vector(cohort_from_frame(frame, study), study.privacy).tolist() == [0.0]
