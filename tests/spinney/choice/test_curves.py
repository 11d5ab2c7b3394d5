"""Curves that may be looked at."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.choice.curves import FEWEST_PATIENTS, MOST_BINS, MOST_POINTS, Curve, curve
from tests.spinney.in_process import Wood, cohorts, study


def rows(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(count)
    return (rng.random(count) < score).astype(int), score


def steps(points: tuple[float, ...], total: int) -> np.ndarray:
    return np.diff([0, *points]) * total


@pytest.mark.parametrize("count", [7, 60, 5000])
def test_a_curve_has_few_points_and_ends_where_everybody_is_called(count):
    y, score = rows(count)
    drawn = curve(y, score, np.arange(count))
    assert 1 <= len(drawn.recall) <= MOST_POINTS
    assert len(drawn.bins) <= MOST_BINS
    assert (drawn.recall[-1], drawn.alarms[-1]) == (1, 1)
    assert drawn.precision[-1] == round(y.mean(), 2)


def test_from_one_point_to_the_next_there_are_at_least_five_patients():
    y, score = rows(83)
    drawn = curve(y, score, np.arange(83))
    moved = steps(drawn.recall, y.sum()) + steps(drawn.alarms, (1 - y).sum())
    assert moved.min() > FEWEST_PATIENTS - 1  # shares are rounded
    assert min(one.rows for one in drawn.bins) >= FEWEST_PATIENTS
    assert sum(one.rows for one in drawn.bins) == 83


def test_patients_count_and_not_their_rows():
    y, score = rows(100)
    assert len(curve(y, score, np.arange(100) // 20).recall) == 1  # five patients: one point
    assert curve(y, score, np.arange(100) // 25) == Curve((), (), (), ())


def test_tied_scores_are_never_cut_apart():
    y, _ = rows(100)
    drawn = curve(y, np.repeat([0.8, 0.2], 50), np.arange(100))
    assert len(drawn.recall) == 2
    assert [one.rows for one in drawn.bins] == [50, 50]


def test_one_class_has_no_curve():
    assert curve(np.ones(50), np.linspace(0, 1, 50), np.arange(50)) == Curve((), (), (), ())


def test_a_site_has_curves_of_its_local_forest_of_the_default_and_of_the_model_that_it_chose():
    wood = study()
    made = Wood(wood, cohorts(wood, rows=300))
    made.run()
    outcome = made.outcomes["elm"]
    assert set(outcome.curves) == {"local", "bofrf", "chosen"}
    assert all(one.recall for one in outcome.curves.values())
    assert {*outcome.compared["local"]} >= {"auroc", "auprc", "brier"}
    assert outcome.compared["local"]["auroc"] == outcome.auroc["local"]
