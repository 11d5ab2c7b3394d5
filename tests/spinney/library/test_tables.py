"""Frames become cohorts."""

from __future__ import annotations

import pandas as pd
import pytest

from spinney.errors import CohortRejected
from spinney.library.tables import absent_everywhere, cohort_of, named_frames, study_for
from spinney.rows.parts import Part

TABLE = pd.DataFrame({"patient": [f"p{n // 4}" for n in range(80)], "age": range(80), "died": [0, 1] * 40})


def test_rows_of_a_patient_are_in_one_part():
    cohort = cohort_of("ash", TABLE, study_for({"ash": TABLE}, "died", None))
    assert cohort.patient_count == 20
    parts = {patient: {*cohort.part[cohort.patients == patient].tolist()} for patient in range(20)}
    assert all(len(part) == 1 for part in parts.values())
    assert {Part.TRAINING, Part.TEST} <= {*cohort.part.tolist()}


def test_rows_of_nobody_are_refused():
    study = study_for({"ash": TABLE}, "died", None)
    with pytest.raises(CohortRejected, match="ash: patient is known"):
        cohort_of("ash", TABLE.assign(patient=[None, *TABLE["patient"][1:]]), study)


def test_a_feature_that_nobody_has_is_named():
    study = study_for({"ash": TABLE}, "died", None)
    assert absent_everywhere({"ash": cohort_of("ash", TABLE, study)}) == []
    assert absent_everywhere({"ash": cohort_of("ash", TABLE.drop(columns="age"), study)}) == ["age"]


def test_sites_are_in_the_order_of_their_names_and_columns_are_called_by_text():
    frames = named_frames({"b": TABLE.rename(columns={"age": 7}), "a": TABLE[::-1]})
    assert list(frames) == ["a", "b"]
    assert "7" in frames["b"].columns
    assert frames["a"].index[0] == 0
