"""Means and deviations from counts, sums and squares."""

from __future__ import annotations

import numpy as np

from spinney.rows.moments import Moments
from tests.spinney.in_process import cohort, study


def test_moments_of_rows_are_numpy_s():
    people = cohort(study(), 200, absent=(2,))
    moments = Moments.of_rows(people)
    here = [0, 1, 3]
    np.testing.assert_allclose(moments.mean[here], people.X[:, here].mean(axis=0, dtype=float), atol=1e-12)
    np.testing.assert_allclose(moments.deviation[here], people.X[:, here].std(axis=0, dtype=float), atol=1e-9)
    assert np.isnan(moments.mean[2])
    np.testing.assert_array_equal(moments.missing, [0, 0, 1, 0])
    assert moments.base_rate == round(float(people.y.mean()), 3)


def test_of_no_rows_there_is_nothing():
    moments = Moments.of(np.zeros(2 + 3 * 2))
    assert np.isnan(moments.mean).all()
    np.testing.assert_array_equal(moments.deviation, [0, 0])
    assert moments.base_rate == 0.5
