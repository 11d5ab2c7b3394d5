"""A hostile reader of opened sums: what can be solved for, and what closes it."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.attacks import sums
from spinney.linear import fit
from spinney.linear.plan import Plan


def people(rows, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = np.clip(rng.normal(size=(rows, columns)), -4, 4)
    y = (rng.random(rows) < fit.sigmoid(Z[:, 0])).astype(np.int8)
    y[:2] = (0, 1)
    return Z, y


def left(rows, steps, seed, columns=3):
    """How much of an attacker's error is left, who knew every row roughly, once the opened sums are solved for rows."""
    Z, y = people(rows, columns, seed)
    starts = sums.starts_of(Z, y, steps, 10.0)
    guess = Z + 0.1 * np.random.default_rng([seed, 1]).normal(size=Z.shape)
    found = sums.solve(sums.opened(Z, y, starts), y, starts, guess)
    return np.linalg.norm(found - Z) / np.linalg.norm(guess - Z)


def test_many_numbers_about_a_few_patients_give_their_rows():
    assert np.median([left(4, 6, seed) for seed in range(3)]) < 0.001


def test_as_many_numbers_as_the_limit_allows_leave_what_was_not_known():
    rows, columns, steps = 24, 3, 2
    assert steps * fit.numbers(columns) == 0.25 * rows * columns
    for seed in range(3):
        assert left(rows, steps, seed) > 0.85  # a quarter as many equations as unknowns leave about sqrt(3/4) at best


def test_the_limit_forbids_the_sums_from_which_rows_could_be_solved():
    assert Plan.of(4, 3, 11, 0.25).way == ""
    assert Plan.of(48, 3, 11, 0.25).sums * fit.numbers(3) <= 0.25 * 48 * 3


def test_whoever_may_choose_the_start_can_light_up_two_patients():
    Z, y = people(300)
    direction = np.array([1.0, 0.3, -0.2])
    assert sums.lit(Z, y, 5000 * direction) < 4
    curvature = fit.full(fit.gradient_sums(Z, y, 5000 * direction)[3:], 3)
    values, vectors = np.linalg.eigh(curvature)
    near = np.argsort(np.abs(Z @ direction - np.sort(Z @ direction)[::-1][int(y.sum()) - 1]))[:4]
    pairs = [Z[one] - Z[other] for one in near for other in near if one != other]
    found = max(abs(float(vectors[:, -1] @ pair)) / np.linalg.norm(pair) for pair in pairs)
    assert values[-1] > 0
    assert found > 0.99  # the curvature is the difference of two patients' rows


def test_at_the_starts_that_follow_from_opened_sums_most_patients_have_a_say():
    for seed in range(5):
        Z, y = people(300, seed=seed)
        for b in sums.starts_of(Z, y, 8, 10.0):
            assert sums.lit(Z, y, b) > 150


@pytest.mark.parametrize(("more", "told"), [(1, True), (20, False)])
def test_one_patient_more_at_the_same_start_shows_that_patient_and_twenty_hide_each_other(more, told):
    cosines = []
    for seed in range(10):
        Z, y = people(200 + more, seed=seed)
        before, after = (fit.gradient_sums(Z[:many], y[:many], np.zeros(3)) for many in (200, 200 + more))
        centre = Z[:200].mean(axis=0)
        row = Z[200] - centre
        cosines.append(abs(float(sums.direction_of(before, after, 3) @ row)) / np.linalg.norm(row))
    assert (np.median(cosines) > 0.95) == told
