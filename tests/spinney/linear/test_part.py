"""Coefficients as part of a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.errors import Refused
from spinney.linear.design import Design
from spinney.linear.part import LinearPart
from spinney.linear.votes import LinearFit

DESIGN = Design(np.array([0, 1]), np.array([0.5, 0.5]), np.array([0.1, 0.2]), 2)
FITTED = LinearFit(DESIGN, np.array([1.0, -2.0]), 0.3)
X = np.array([[0.6, 0.5], [np.nan, 0.9]], dtype=np.float32)
HERE = np.ones(2, dtype=bool)


def test_what_it_adds_is_its_own_calibrated_log_odds():
    part = LinearPart.of(FITTED, own=(0.5, 0.1), forest=(0.4, -0.2), common=True)
    eta = FITTED.scores(X, HERE)
    np.testing.assert_allclose(part.log_odds(X, HERE), 0.5 * eta + 0.1 - 0.2, atol=1e-9)
    assert part.forest == 0.4
    np.testing.assert_allclose(part.terms(X, HERE).sum(axis=1) + part.intercept, part.log_odds(X, HERE), atol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"coefficients": np.array([1.0, np.inf])},
        {"coefficients": np.zeros(3)},
        {"forest": -1.0},
        {"intercept": np.nan},
        {"design": replace(DESIGN, places=np.array([0, 7]))},
        {"design": replace(DESIGN, deviation=np.array([0.1, 0.0]))},
        {"design": replace(DESIGN, columns=3)},
    ],
)
def test_a_part_that_cannot_be_is_refused(change):
    part = LinearPart.of(FITTED, own=(1.0, 0.0), forest=(0.0, 0.0), common=True)
    part.check(2)
    with pytest.raises(Refused, match="linear part"):
        replace(part, **change).check(2)


def test_another_part_has_other_words():
    part = LinearPart.of(FITTED, own=(1.0, 0.0), forest=(0.5, 0.0), common=True)
    others = [replace(part, forest=0.4), replace(part, common=False), replace(part, intercept=0.0)]
    assert len({part.words(), *(one.words() for one in others)}) == 4
