"""What a hospital that brings nothing would get: the others' trees, and never its own."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.choice.metrics import auroc
from spinney.choice.weigh import tempered_weights
from spinney.errors import StudyInvalid
from spinney.trial.newcomer import newcomers_model, without_each
from spinney.trial.simulate import simulate
from tests.spinney.in_process import SITES, cohorts, study


def test_the_others_trees_vote_as_their_sum_says():
    wood, people = study(), cohorts(study(), SITES)
    others = {name: one for name, one in people.items() if name != "ash"}
    result = simulate(wood, others)
    model = newcomers_model(wood, result, others)
    order = result.release.order_of("beech")
    assert set(model.owners_) == {*others}
    assert model.weights_ == pytest.approx(tempered_weights(order.weights, order.weights, 0))


def test_every_site_is_ranked_on_all_its_rows_by_what_the_others_make_without_it():
    wood, people = study(), cohorts(study())
    said: list[str] = []
    figures = without_each(wood, cohorts, 1, said.append)
    assert said == [*SITES]
    others = {name: one for name, one in people.items() if name != "elm"}
    votes = newcomers_model(wood, simulate(wood, others), others).votes(people["elm"].X, people["elm"].present)
    assert figures["elm"].value == pytest.approx(auroc(people["elm"].y, votes))
    assert figures["elm"].low < figures["elm"].value < figures["elm"].high


@pytest.mark.parametrize("name", ["local", "boppid"])
def test_who_makes_no_common_trees_can_t_be_asked(name):
    wood = study(algorithm={"name": name})
    with pytest.raises(StudyInvalid, match="leaves no common trees"):
        newcomers_model(wood, simulate(wood, cohorts(wood)), cohorts(wood))


def test_equal_votes_are_equal_for_a_newcomer_too():
    wood = study(algorithm={"name": "fedrf"})
    assert np.unique(newcomers_model(wood, simulate(wood, cohorts(wood)), cohorts(wood)).weights_).tolist() == [1.0]
