"""Better, and to be trusted: words that follow from the figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice.answers import better, shares, trusted, weakest_group
from spinney.choice.metrics import Figure, calibration
from spinney.choice.outcome import Subgroup
from spinney.trial.simulate import simulate
from tests.spinney.in_process import cohorts, study


@pytest.fixture(scope="module")
def outcome():
    return simulate(study(), cohorts(study(), rows=400)).outcomes["ash"]


def group(name: str, patients: int, auroc: float) -> Subgroup:
    return Subgroup(name, patients, {"auroc": Figure(auroc, auroc - 0.1, auroc + 0.1)}, 0.3, 0.3)


def test_better_is_what_the_gain_says(outcome):
    said = better(replace(outcome, gain={"auroc": Figure(0.03, 0.01, 0.05)}))
    assert said.line == "+ Better? Yes, +0.030 (+0.010 to +0.050)."
    assert better(replace(outcome, gain={})).mark == "?"
    assert better(None).words == "There is no new model."


def test_predicted_and_observed_are_means_over_all_test_rows(outcome):
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = rng.random(200) < p
    told = shares(replace(outcome, calibration=calibration(y, p)))
    assert told == pytest.approx((p.mean(), y.mean()))


def test_a_prediction_that_is_far_off_is_a_reason_to_look(outcome):
    p = np.full(100, 0.5)
    off = replace(outcome, calibration=calibration(np.arange(100) < 20, p), subgroups=())
    assert trusted(off).line == "! May we trust it? It predicts 50% where 20% happened."
    well = replace(outcome, calibration=calibration(np.arange(100) < 51, p), subgroups=())
    assert trusted(well).line == "+ May we trust it? Predicted 50%, observed 51%."


def test_a_group_in_which_it_is_weaker_is_named(outcome):
    all_of_them = outcome.figures["auroc"].value
    groups = (group("sex: female", 60, all_of_them), group("age: 80 and over", 30, all_of_them - 0.2), Subgroup("few"))
    said = trusted(replace(outcome, subgroups=groups)).words
    assert "eaker for age: 80 and over" in said
    assert "smallest group measured: age: 80 and over, about 30 patients" in said
    assert weakest_group(replace(outcome, subgroups=())) is None


def test_an_open_question_is_a_reason_to_look(outcome):
    asked = replace(outcome, decision=replace(outcome.decision, question="is the label reversed?"))
    assert trusted(asked).line.startswith("! May we trust it? A person has to look: is the label reversed;")
    assert trusted(None, ("two columns drifted",)).words == "Two columns drifted; nothing was measured."
