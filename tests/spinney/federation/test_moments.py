"""Moments of all columns by one secure sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.errors import Refused
from spinney.federation.moments import Moments, federated_moments, told_moments
from spinney.rows.parts import Part
from tests.spinney.federation.adding import adder, begun
from tests.spinney.in_process import cohort, cohorts, study

__all__ = ["adder"]
pytestmark = pytest.mark.usefixtures("adder")


def test_moments_are_those_computed_by_hand_for_any_secure_sum():
    wood = study()
    people = cohorts(wood, rows=200)
    _, adding = begun(people=people)
    moments, _ = federated_moments(adding, 4)
    training = [one.rows(Part.TRAINING) for one in people.values()]
    rows = [round(len(one) / 10) * 10 for one in training]
    means = [one.X.astype(np.float64).mean(axis=0) for one in training]
    squares = [(one.X.astype(np.float64) ** 2).mean(axis=0) for one in training]
    mean = np.average(means, axis=0, weights=rows)
    np.testing.assert_allclose(moments.mean, mean, atol=1e-9)
    deviation = np.sqrt(np.average(squares, axis=0, weights=rows) - mean**2)
    np.testing.assert_allclose(moments.deviation, deviation, atol=1e-7)
    assert moments.rows == sum(rows)
    np.testing.assert_array_equal(moments.missing, np.zeros(4))
    share = sum(round(int(one.y.sum()) / 10) * 10 for one in training) / sum(rows)
    assert moments.base_rate == round(share, 3)


def test_a_column_of_too_few_patients_and_a_handful_of_others_are_not_told():
    wood = study()
    people = cohort(wood, 200).rows(Part.TRAINING)
    X = people.X.copy()
    X[: len(X) - 29, 0] = np.nan  # known of 29 patients
    X[:, 1] = 0.5
    X[:4, 1] = 0.9  # 4 who differ from the others
    present = np.array([True, True, True, False])
    told = told_moments(replace(people, X=X, present=present), wood.privacy)
    known, sums, squares = told[2:].reshape(-1, 3).T
    assert (known[0], sums[0], squares[0]) == (0, 0, 0)
    assert (sums[1], squares[1]) == (0.5 * known[1], 0.25 * known[1])
    assert known[2] > 0
    assert known[3] == 0


def test_moments_that_cannot_be_are_held_to_what_can():
    moments = Moments.of(np.array([100, 300, 900, 950, 990, 0, 0, 0], dtype=np.float64))
    assert moments.base_rate == 1
    np.testing.assert_array_equal(moments.mean, [1, np.nan])
    np.testing.assert_array_equal(moments.deviation, [0, 0])
    np.testing.assert_array_equal(moments.missing, [0, 1])


def test_a_site_knows_one_set_of_moments_only():
    federation, adding = begun()
    found = federated_moments(adding, 4)[1]
    ash = federation.site("ash")
    assert ash.moments(found.opened).rows == ash.moments(found.opened).rows
    federation.houses["ash"].memory["told-moments"] = found.values + 1
    with pytest.raises(Refused, match="other moments"):
        ash.moments(found.opened)
