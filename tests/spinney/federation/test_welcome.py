"""Who takes part: the first question of every round."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.errors import RoundVoid
from spinney.federation.welcome import welcome
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study


def test_everybody_who_is_large_enough_is_described() -> None:
    wood = study()
    people = cohorts(wood) | {"elm": cohort(wood, rows=12)}
    federation = Wood(wood, people)
    joined = welcome(federation, wood)
    assert sorted(joined) == sorted({*SITES} - {"elm"})
    assert federation.left_out == {"elm": "fewer training patients than the smallest cohort of 30"}
    assert all(np.all((one.vector >= 0) & (one.vector <= 1)) for one in joined.values())


def test_too_few_sites_are_no_round() -> None:
    wood = study(quorum=4)
    people = cohorts(wood) | {"elm": cohort(wood, rows=12)}
    with pytest.raises(RoundVoid, match="3 sites are left and 4 are needed"):
        welcome(Wood(wood, people), wood)


def test_means_of_all_sites_come_first_where_the_study_fills_with_them() -> None:
    wood = study(imputation="federated-means")
    federation = Wood(wood, cohorts(wood))
    welcome(federation, wood)
    assert federation.steps()[-1] == "join 1"
    assert federation.steps()[0] == "enrol 1"
    assert federation.order("join").means.shape == (4,)
    plain = Wood(study(), cohorts(study()))
    welcome(plain, study())
    assert plain.steps() == ["join 1"]
