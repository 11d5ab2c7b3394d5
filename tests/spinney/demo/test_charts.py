"""What is written down during the patients' lives: plausible values, related as in the sick."""

from __future__ import annotations

import pandas as pd
import pytest

from spinney.demo.history import MadeUpHistory
from spinney.demo.site import world_study
from spinney.demo.table import finished_table
from spinney.demo.words import MEASURES, VITALS

PLAUSIBLE = {
    "systolic": (105, 145),
    "diastolic": (60, 90),
    "heart_rate": (65, 95),
    "saturation": (92, 98),
    "weight": (60, 95),
    "creatinine": (0.8, 1.7),
    "sodium": (134, 142),
    "potassium": (3.9, 4.9),
    "haemoglobin": (11, 15),
    "glucose": (95, 160),
    "nt_probnp": (800, 6000),
    "ejection_fraction": (30, 50),
}


def values(history: MadeUpHistory, measure: str) -> pd.Series:
    rows = history.events["Observation"]
    return rows.loc[rows["code"] == MEASURES[measure].code, "value"]


@pytest.mark.parametrize("measure", PLAUSIBLE)
def test_the_typical_value_is_that_of_patients_with_heart_failure(history, measure):
    low, high = PLAUSIBLE[measure]
    assert low < values(history, measure).median() < high


@pytest.mark.parametrize("measure", PLAUSIBLE)
def test_values_stay_within_the_ranges_of_the_study(history, measure):
    ranges = {feature.name: feature.range for feature in world_study().features}
    low, high = ranges.get(measure) or (20, 200)
    assert values(history, measure).between(low, high).all()


def test_sicker_kidneys_go_with_less_haemoglobin_and_more_creatinine(history):
    table = finished_table(history, world_study())
    numbers = table[["creatinine", "haemoglobin", "nt_probnp", "ejection_fraction", "kidney_disease"]]
    related = numbers.astype(float).corr(method="spearman")
    assert related.loc["creatinine", "haemoglobin"] < -0.1
    assert related.loc["creatinine", "kidney_disease"] > 0.4
    assert related.loc["nt_probnp", "ejection_fraction"] < -0.1


def test_vitals_are_written_at_the_bedside_and_results_later(history):
    rows = history.events["Observation"].dropna(subset="value")
    at_once = rows["code"].isin([MEASURES[name].code for name in VITALS])
    wait = rows["recorded"] - rows["time"]
    assert (wait[at_once] == pd.Timedelta(0)).all()
    assert (wait[~at_once] > pd.Timedelta(0)).all()
