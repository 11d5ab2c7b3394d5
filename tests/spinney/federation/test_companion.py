"""A logistic regression of all sites beside the forest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice.evidence import evidence_of, headline
from spinney.choice.saved import read_words, restore, save
from spinney.errors import Refused
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.testing.algorithm import AlgorithmContract
from spinney.trial.simulate import simulate
from tests.spinney.in_process import FEATURES, SITES, SMALL, Wood, cohort, cohorts, study

MODES = ("masked", "ring", "trusted-third-party")


def wood(mode: str = "masked", **settings: object) -> Study:
    return study(algorithm={"name": "bofrf", "companion": "linear", **settings}, privacy={"secure_sum": mode})


class TestCompanion(AlgorithmContract):
    @pytest.fixture
    def study(self) -> Study:
        words = {"name": "wood", "features": FEATURES, "label": {"name": "died"}, **SMALL}
        return Study.model_validate({**words, "algorithm": {"name": "bofrf", "companion": "linear"}})


@pytest.fixture(scope="module")
def people():
    return cohorts(wood())


@pytest.fixture(scope="module")
def night(people):
    return simulate(wood(), people)


def test_all_three_secure_sums_give_the_same_models_bit_for_bit(people, night):
    for mode in ("ring", "trusted-third-party"):
        other = simulate(wood(mode), people)
        assert other.model_digest == night.model_digest
        assert all(other.outcomes[site].model.digest == night.outcomes[site].model.digest for site in SITES)


def test_every_site_compares_with_the_strongest_that_it_could_have_alone(night):
    for outcome in night.outcomes.values():
        assert [*outcome.auroc][:6] == ["local", "local blend", "fedrf", "bofrf", "linear", "blend"]
        reached = outcome.decision.cross_validated
        assert outcome.strongest_alone == max(("local", "local blend"), key=lambda one: reached[one])
        assert outcome.gain_over_alone["auroc"].value == pytest.approx(
            outcome.auroc["chosen"].value - outcome.auroc[outcome.strongest_alone].value, abs=0.005
        )


def test_the_blend_is_the_default_and_reported_first_against_the_strongest_alone(night):
    chosen = {outcome.decision.name for outcome in night.outcomes.values()}
    assert "blend" in chosen
    assert chosen <= {"blend", "local", "local blend"}
    told = evidence_of(night.outcomes["ash"])
    assert {one["name"] for one in told["odds_ratios"]} == {"x0", "x1", "x2", "x3"}
    assert told["odds_ratios"][0]["name"] == "x0"  # the concept's strongest
    assert "gain_over_strongest_local" in headline(night.outcomes["ash"])


def test_a_blend_is_saved_and_opened_and_votes_as_the_chooser_did(night, people):
    for site in SITES:
        model = night.outcomes[site].model
        words, trees = save(model, 0.01)
        again = restore(read_words(words.model_dump_json().encode()), trees)
        assert again.digest == model.digest
        test = people[site].rows(Part.TEST)
        np.testing.assert_array_equal(again.votes(test.X, test.present), model.votes(test.X, test.present))
        tested = night.outcomes[site].tested
        if model.linear_ is not None and tested is not None:
            blended = tested.votes[night.outcomes[site].decision.name]
            np.testing.assert_array_equal(blended, model.votes(test.X, test.present))
            assert model.without("elm" if site != "elm" else "ash").linear_ is model.linear_


def test_nothing_is_added_where_the_study_has_no_companion(people):
    for settings in ({"companion": "none"}, {"preset": "published"}, {"selection": "personalised"}):
        federation = Wood(wood(**settings), people)
        federation.run()
        assert not [step for step in federation.steps() if step.startswith("add")]
        assert not federation.order("finish").linear
        assert "blend" not in federation.outcomes["ash"].auroc
    order = Wood(wood(), people)
    order.run()
    with pytest.raises(Refused, match="no logistic regression"):
        federation.site("ash").summands(order.order("add"))


def test_a_night_within_the_epoch_asks_nothing_more(people, night):
    steps = []
    again = simulate(wood(), people, round=2, after=night, progress=lambda step, _done, _asked: steps.append(step))
    assert {*steps} == {"resume", "finish"}
    assert all("blend" in outcome.auroc for outcome in again.outcomes.values())


@pytest.mark.parametrize("step", ["add", "add_sign", "add_release"])
def test_a_site_that_is_lost_in_the_companion_s_sums_never_voids_the_round(people, step):
    result = simulate(wood(), people, lost={"elm": step})
    assert [*result.left_out] == ["elm"]
    assert {*result.outcomes} == {"ash", "beech", "cedar"}
    notes = result.outcomes["ash"].decision.notes
    assert ("no common logistic regression: its sums were not opened" in notes) == (step == "add_release")


def test_a_lost_neighbour_in_the_ring_costs_the_companion_only(people):
    result = simulate(wood("ring"), people, lost={"elm": "add"})
    assert {*result.outcomes} == {"ash", "beech", "cedar"}
    assert "blend" not in result.outcomes["ash"].auroc


def test_where_too_little_may_be_opened_the_report_says_so(people):
    outcome = simulate(wood(open_share=0.0), people).outcomes["ash"]
    assert "no common logistic regression: so few rows allow no sums for one" in outcome.decision.notes
    assert outcome.decision.name in ("bofrf", "local", "local blend")


def test_a_companion_that_was_not_summed_is_refused(people):
    def change(step, site, order):
        if step != "finish" or site != "elm":
            return order
        return replace(order, linear=replace(order.linear, at=order.linear.at + 0.1))

    federation = Wood(wood(), people, tamper=change)
    federation.run()
    assert "not those of the sums" in federation.left_out["elm"]


def test_a_large_site_weighs_both_by_a_ridge():
    large = {site: cohort(wood(), 1600 if site == "ash" else 160, seed) for seed, site in enumerate(SITES)}
    model = simulate(wood(), large).outcomes["ash"].model
    assert model.linear_ is not None
    assert model.linear_.forest > 0
