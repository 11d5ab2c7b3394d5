"""The same columns at every site, from moments of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spinney.linear.design import FARTHEST, Design
from spinney.rows.encode import columns_of
from spinney.rows.moments import Moments
from spinney.study.study import Study
from tests.spinney.in_process import cohort, study

KINDS = [
    {"name": "age", "kind": "continuous", "range": [0, 100]},
    {"name": "smokes", "kind": "binary"},
    {"name": "ward", "kind": "categorical", "categories": ["east", "north", "west"]},
]


def words() -> Study:
    return Study.model_validate({"name": "hand", "features": KINDS, "label": {"name": "y"}})


def test_columns_are_standardised_by_the_moments_of_all():
    wood = study()
    people = cohort(wood, 400)
    design = Design.of(Moments.of_rows(people), people.columns)
    Z = design.rows(people.X, people.present)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(Z.std(axis=0), 1, atol=1e-6)
    assert design.names(people.columns) == ("x0", "x1", "x2", "x3")


def test_what_is_often_missing_has_a_column_that_says_so_once_per_feature():
    columns = columns_of(words().features)
    moments = Moments(100, 40, np.array([100, 99, 90, 90, 90.0]), np.full(5, 30.0), np.full(5, 25.0))
    design = Design.of(moments, columns)
    assert design.names(columns) == ("age", "smokes", "ward=east", "ward=north", "ward=west", "ward missing")
    X = np.array([[0.3, 1, np.nan, np.nan, np.nan], [np.nan, 0, 1, 0, 0]], dtype=np.float32)
    Z = design.rows(X, np.ones(5, dtype=bool))
    assert Z[0, 2:5].tolist() == [0, 0, 0]
    assert Z[1, 0] == 0
    assert np.allclose(Z[:, 5], [min(0.9 / 0.3, FARTHEST), -0.1 / 0.3])


def test_a_feature_that_a_site_does_not_have_is_missing_in_all_rows():
    columns = columns_of(words().features)
    moments = Moments(100, 40, np.full(5, 60.0), np.full(5, 30.0), np.full(5, 25.0))
    design = Design.of(moments, columns)
    present = np.array([True, True, False, False, False])
    Z = design.rows(np.full((3, 5), 0.5, dtype=np.float32), present)
    assert not Z[:, 2:5].any()
    assert np.all(Z[:, -1] > 0)


def test_a_column_in_which_nothing_differs_is_left_out():
    wood = study()
    people = cohort(wood, 200)
    X = people.X.copy()
    X[:, 1] = 0.25
    design = Design.of(Moments.of_rows(replace(people, X=X)), people.columns)
    assert design.names(people.columns) == ("x0", "x2", "x3")


def test_no_value_lies_farther_out_than_the_limit():
    moments = Moments(100, 40, np.full(5, 100.0), np.full(5, 50.0), np.full(5, 25.01))
    design = Design.of(moments, columns_of(words().features))
    X = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], dtype=np.float32)
    assert np.abs(design.rows(X, np.ones(5, dtype=bool))).max() == FARTHEST
