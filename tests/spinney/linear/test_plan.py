"""How many numbers may be opened decides the way to fit."""

from __future__ import annotations

import pytest

from spinney.linear.fit import MOST_STEPS, numbers
from spinney.linear.plan import FEWEST_STEPS, NONE, ONE_ROUND, STEPWISE, Plan


@pytest.mark.parametrize(
    ("rows", "columns", "way"),
    [
        (576, 8, STEPWISE),
        (346, 9, STEPWISE),
        (200, 8, STEPWISE),
        (120, 20, ONE_ROUND),
        (60, 20, ONE_ROUND),
        (59, 20, NONE),
    ],
)
def test_fewer_rows_allow_less(rows, columns, way):
    assert Plan.of(rows, columns, 2 + 3 * columns, 0.25).way == way


def test_all_numbers_together_stay_within_the_limit():
    for rows in range(50, 3000, 50):
        for columns in (1, 5, 20, 60):
            opened = 2 + 3 * columns
            plan = Plan.of(rows, columns, opened, 0.25)
            told = opened + plan.sums * (numbers(columns) + (plan.way == ONE_ROUND))
            assert not plan.way or told <= plan.limit == int(0.25 * rows * columns)
            assert plan.way != STEPWISE or FEWEST_STEPS <= plan.sums <= MOST_STEPS
            assert plan.way or plan.reason


def test_a_share_of_nothing_allows_nothing():
    plan = Plan.of(10_000, 5, 17, 0.0)
    assert plan.way == NONE
    assert plan.reason == "even one round would open 38 numbers, more than the limit of 0"
    assert Plan.of(10_000, 0, 2, 0.25).reason == "no column differs among all rows"
