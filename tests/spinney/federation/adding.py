"""A federation whose sites add up real numbers."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from spinney.federation.forest_site import ForestSite
from spinney.federation.moments import MOMENTS, MomentSums
from spinney.federation.real_sums import ADDING, Adding, Terms
from spinney.federation.seam import Algorithm
from spinney.federation.welcome import welcome
from spinney.plugins import ALGORITHMS
from tests.spinney.in_process import Wood, cohorts, study

MODES = ("masked", "ring", "trusted-third-party")
NEAR = Terms(3, -4.0, 4.0)


class Adder(MomentSums, ForestSite):
    """Tells moments, and three numbers of its own."""

    steps = frozenset({"join", "finish"}) | ADDING

    def summands(self, order):
        if order.subject == MOMENTS:
            return super().summands(order)
        return np.array([0.25, -1.5, len(self.house.name)]), NEAR


def adding_instead_of_trees():
    """While this lasts, a study of trees is one of sums."""
    bofrf = ALGORITHMS["bofrf"]
    return patch.dict(ALGORITHMS._loaded, {"bofrf": Algorithm(bofrf.settings, Adder, bofrf.coordinate)})


@pytest.fixture
def adder():
    with adding_instead_of_trees():
        yield


def begun(mode="masked", people=None, kind=Wood, **kwargs):
    wood = study(privacy={"secure_sum": mode})
    federation = kind(wood, people or cohorts(wood), **kwargs)
    joined = welcome(federation, wood)
    return federation, Adding(federation, wood, {site: one.rows for site, one in joined.items()})
