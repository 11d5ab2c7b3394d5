"""What a made-up hospital writes down: plausible values, coherent lives, and one more day every night."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from spinney.demo.history import MadeUpHistory, NoSuchNight, end_of, make_history
from spinney.demo.hospitals import make_hospitals
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


@pytest.fixture(scope="module")
def history() -> MadeUpHistory:
    """The hospital that writes as the study does."""
    return make_history(make_hospitals(4, 1600, 3)[1], 3)


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


def test_the_label_is_what_the_stays_say(history):
    """Counted here in another way than by the engine."""
    stays = history.events["Encounter"].query("`class` == 'IMP'").sort_values(["patient", "time"])
    following = stays.groupby("patient", observed=True)["time"].shift(-1)
    back = (following - stays["until"]) <= pd.Timedelta(days=30)
    expected = {(who, end): yes for who, end, yes in zip(stays["patient"], stays["until"], back, strict=True)}
    table = finished_table(history, world_study())
    assert len(table) > 300
    assert [bool(one) for one in table["readmitted"]] == [
        expected[row] for row in zip(table["patient"], table["index_time"], strict=True)
    ]


def test_stays_of_a_patient_do_not_overlap_and_nothing_happens_after_death(history):
    stays = history.events["Encounter"].query("`class` in ('IMP', 'OBSENC')").sort_values(["patient", "time"])
    before = stays.groupby("patient", observed=True)["until"].shift()
    assert not (stays["time"] < before).any()
    died = history.patients.set_index("patient")["died"]
    for rows in history.events.values():
        assert not (rows["time"].to_numpy() > died.reindex(rows["patient"]).to_numpy()).any()


def test_the_next_night_has_all_of_the_last_one_and_some_more():
    hospital = make_hospitals(4, 1600, 3)[3]
    first, second = (make_history(hospital, 3, night) for night in (1, 2))
    assert len(second.patients) >= len(first.patients)
    for kind, rows in first.events.items():
        later = second.events[kind]
        assert len(later) > len(rows) or kind == "Condition"
        assert later["number"].iloc[: len(rows)].tolist() == rows["number"].tolist()
        assert (later["time"] <= np.datetime64(end_of(2).replace(tzinfo=None))).all()


def test_a_stay_that_is_under_way_has_no_end_yet(history):
    under_way = history.events["Encounter"].query("status == 'in-progress'")
    assert len(under_way) > 0
    assert under_way["until"].isna().all()


def test_the_world_says_when_it_ends():
    with pytest.raises(NoSuchNight, match="choose one from 1 to 60"):
        end_of(61)


def test_vitals_are_written_at_the_bedside_and_results_later(history):
    rows = history.events["Observation"].dropna(subset="value")
    at_once = rows["code"].isin([MEASURES[name].code for name in VITALS])
    wait = rows["recorded"] - rows["time"]
    assert (wait[at_once] == pd.Timedelta(0)).all()
    assert (wait[~at_once] > pd.Timedelta(0)).all()
