"""Trees and a logistic regression as one vote."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from spinney.choice import blend, metrics
from spinney.linear.design import Design
from spinney.linear.part import LinearPart

RNG = np.random.default_rng(0)


def part(forest):
    none = np.zeros(0)
    return LinearPart(Design(none.astype(np.int64), none, none, 2), none, 0.0, forest, none, common=True)


def test_the_blend_is_the_mean_of_log_odds():
    votes, added = np.array([0.2, 0.5, 0.9]), np.array([1.0, -1.0, 0.0])
    said = blend.blended(votes, part(0.5), added)
    np.testing.assert_allclose(metrics.log_odds(said), 0.5 * np.log(votes / (1 - votes)) + added, atol=1e-9)


def test_trees_without_a_say_leave_the_linear_part_alone():
    said = blend.blended(np.array([0.9, np.nan]), part(0.0), np.array([0.0, 2.0]))
    np.testing.assert_allclose(said, [0.5, 1 / (1 + np.exp(-2))])


def test_a_line_is_platt_s_unless_votes_and_outcomes_fall_together():
    y = (RNG.random(200) < 0.3).astype(np.int8)
    rising = np.clip(0.3 + 0.3 * y + 0.1 * RNG.normal(size=200), 0.01, 0.99)
    assert blend.line_of(rising, y) == metrics.platt(rising, y)
    assert blend.line_of(1 - rising, y)[0] == 1.0


def test_weights_are_pulled_towards_equal_ones():
    first = RNG.normal(size=1500)
    second = RNG.normal(size=1500)
    y = (RNG.random(1500) < metrics.probability_of(first)).astype(np.int8)
    shares = blend.ridge_shares(first, second, y)
    free = LogisticRegression(C=1e9).fit(np.column_stack([first, second]), y).coef_[0]
    assert 0.5 < shares[0] < free[0]
    assert 0.5 > shares[1] > free[1]
    assert blend.ridge_shares(first[:5], second[:5], y[:5]) == pytest.approx((0.5, 0.5), abs=0.05)


def test_no_weight_is_negative():
    first = RNG.normal(size=5000)
    y = (RNG.random(5000) < metrics.probability_of(2 * first)).astype(np.int8)
    assert min(blend.ridge_shares(first, -first, y)) >= 0
