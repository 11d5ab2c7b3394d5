"""The gain by the number of sites and of trees."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.trial import curves
from spinney.trial.curves import by_sites, by_trees, subsets
from spinney.trial.simulate import simulate
from tests.spinney.in_process import cohorts, study


def test_groups_are_of_every_size_that_can_sum_and_some_by_lot_where_there_are_many():
    assert list(subsets(["a", "b", "c", "d"], 3, 0)) == [
        ("a", "b", "c"),
        ("a", "b", "d"),
        ("a", "c", "d"),
        ("b", "c", "d"),
        ("a", "b", "c", "d"),
    ]
    many = list(subsets([*"abcdefgh"], 3, 0))
    assert len([one for one in many if len(one) == 4]) == curves.MOST_SUBSETS < 70
    assert len(set(many)) == len(many)


def test_a_site_s_gain_is_told_over_the_groups_that_it_is_in():
    wood = study()
    points = by_sites(wood, cohorts, 1, lambda _: None)
    three, four = points["ash"]
    assert (three.size, three.tried, four.size, four.tried) == (3, 3, 4, 1)
    assert three.least <= three.mean <= three.most
    assert four.mean == pytest.approx(simulate(wood, cohorts(wood)).outcomes["ash"].gain["auroc"].value)


def test_a_site_s_gain_is_told_by_trees(monkeypatch):
    monkeypatch.setattr(curves, "TREES", (2, 4))
    points = by_trees(study(), cohorts, 2, lambda _: None)
    assert [(one.size, one.tried) for one in points["elm"]] == [(2, 2), (4, 2)]
    assert np.isfinite(points["elm"][0].mean)
