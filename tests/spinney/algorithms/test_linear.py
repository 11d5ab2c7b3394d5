"""Federated logistic regression: the pooled one, by sums that no coordinator can start where it likes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from spinney.linear.design import Design
from spinney.linear.fit import numbers
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.testing.algorithm import AlgorithmContract
from spinney.trial.simulate import simulate
from tests.spinney.in_process import FEATURES, SITES, SMALL, Wood, cohort, cohorts, study

MODES = ("masked", "ring", "trusted-third-party")


def wood(mode: str = "masked", **settings: object) -> Study:
    return study(algorithm={"name": "linear", **settings}, privacy={"secure_sum": mode})


class TestLinear(AlgorithmContract):
    @pytest.fixture
    def study(self) -> Study:
        words = {"name": "wood", "features": FEATURES, "label": {"name": "died"}, **SMALL}
        return Study.model_validate({**words, "algorithm": {"name": "linear"}})


def ran(people, mode="masked", **kwargs):
    federation = Wood(wood(mode), people, **kwargs)
    federation.run()
    return federation


def test_the_coefficients_are_those_of_scikit_learn_on_pooled_rows():
    people = {
        **cohorts(wood(), ("ash", "beech", "cedar"), rows=160),
        "elm": cohort(wood(), 420, 9, shift=0.2, base=-1.5, absent=(3,)),
    }
    federation = ran(people)
    terms = federation.order("finish").terms
    training = {site: one.rows(Part.TRAINING) for site, one in people.items()}
    design = Design(terms.places, terms.mean, terms.deviation, 4)
    Z = np.concatenate([design.rows(one.X, one.present) for one in training.values()])
    y = np.concatenate([one.y for one in training.values()])
    site = np.repeat(np.arange(4), [len(one) for one in training.values()])
    model = LogisticRegression(fit_intercept=False, C=1 / 10, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(np.hstack([Z, (site[:, None] == np.arange(4)) * 1e4]), y)
    np.testing.assert_allclose(terms.coefficients(), model.coef_[0, : len(terms.places)], atol=1e-6)
    assert design.names(people["ash"].columns) == ("x0", "x1", "x2", "x3", "x3 missing")


def test_all_three_secure_sums_give_the_same_models_bit_for_bit():
    made = [simulate(wood(mode), cohorts(wood())) for mode in MODES]
    digests = [{name: one.model.digest for name, one in result.outcomes.items()} for result in made]
    assert digests[0] == digests[1] == digests[2]
    assert len({result.model_digest for result in made}) == 1
    assert len(digests[0]) == 4


def test_few_sums_are_asked_and_no_more_than_the_limit_allows():
    federation = ran(cohorts(wood()))
    fits = [step for step in federation.steps() if step.startswith("add ")]
    assert 4 <= len(fits) <= 8
    opened = 14 + (len(fits) - 1) * numbers(4)
    assert opened <= 0.25 * 4 * sum(len(one.rows(Part.TRAINING)) for one in cohorts(wood()).values())


def test_where_the_limit_forbids_steps_one_round_is_summed_and_below_that_nothing():
    people = cohorts(wood())
    one_round = Wood(wood(open_share=0.03), people)
    one_round.run()
    assert one_round.order("finish").terms.way == "one-round"
    assert [step for step in one_round.steps() if step.startswith("add ")] == ["add 1", "add 2"]
    assert not one_round.left_out
    none = Wood(wood(open_share=0.0), people)
    none.run()
    assert not none.order("finish").terms
    assert {one.decision.name for one in none.outcomes.values()} <= {"local", "local linear", "local blend"}


def test_on_a_night_within_the_epoch_nothing_is_summed_and_the_fit_is_used_again():
    people = cohorts(wood())
    opening = simulate(wood(), people)
    steps = []
    again = simulate(wood(), people, round=2, after=opening, progress=lambda step, _done, _asked: steps.append(step))
    assert {*steps} == {"resume", "finish"}
    assert again.model_digest == opening.model_digest
    for site in SITES:
        assert again.outcomes[site].auroc["linear"] == opening.outcomes[site].auroc["linear"]


def test_a_guest_uses_the_fit_in_which_it_is_not():
    people = cohorts(wood())
    opening = simulate(wood(), {site: people[site] for site in SITES[:3]})
    again = simulate(wood(), people, round=2, after=opening)
    assert "linear" in again.outcomes["elm"].auroc
    assert not again.left_out
