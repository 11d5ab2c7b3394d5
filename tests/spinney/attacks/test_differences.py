"""Whether a mean that moved tells who moved it."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.attacks import differences
from tests.spinney.attacks.exporters import people


def test_exact_means_tell_the_newcomer_exactly() -> None:
    X = people(40, 1)[0].astype(np.float64)
    told = differences.newcomer(X[:-1].mean(axis=0), X.mean(axis=0), len(X) - 1)
    assert told == pytest.approx(X[-1])


@pytest.mark.parametrize(("rows", "error"), [(30, 0.010), (100, 0.033)])
def test_rounding_to_a_thousandth_leaves_an_error_that_grows_with_the_cohort(rows: int, error: float) -> None:
    X, _ = people(400, 2)
    found, guess = differences.attack(lambda some: np.round(some.mean(axis=0, dtype=float), 3), X, rows, 200)
    assert found.value == pytest.approx(error, rel=0.2)  # two roundings: the sum of two uniform errors, times rows
    assert found.high < guess.low


def test_a_mean_that_is_told_once_tells_nothing_more_than_itself() -> None:
    X, _ = people(200, 3)
    told = X[:100].mean(axis=0)
    found, guess = differences.attack(lambda _some: told, X, 100, 100)
    assert found.value == pytest.approx(guess.value)
