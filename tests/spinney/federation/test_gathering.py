"""A round with sites that get lost, decline or cheat: who is left out, what is refused, and that the others go on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.errors import Refused, RoundVoid
from spinney.federation.seam import Decline
from spinney.simulate import simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study

# ---------------------------------------------------------------------------------------------------------------
# Sites that get lost


@pytest.mark.parametrize("step", ["join", "grow", "check"])
def test_a_site_lost_before_scoring_is_left_out_with_its_trees(wood, people, step):
    federation = Wood(wood, people, lost={"elm": step})
    federation.run()
    assert federation.left_out == {"elm": f"no answer to {step}"}
    assert federation.owners() == {"ash", "beech", "cedar"}
    assert set(federation.outcomes) == {"ash", "beech", "cedar"}


@pytest.mark.parametrize("mode", ["ring", "trusted-third-party"])
def test_a_site_lost_at_check_leaves_the_same_model_in_every_secure_sum(wood, people, mode):
    lost = {"elm": "check"}
    other = study(privacy={"secure_sum": mode})
    assert Wood(other, people, lost=lost).run() == Wood(wood, people, lost=lost).run()


def test_a_site_lost_before_it_has_scored_is_no_longer_asked_and_nobody_releases_for_the_first_attempt(wood, people):
    federation = Wood(wood, people, lost={"elm": "score"})
    federation.run()
    scoring = federation.steps()[3:-1]
    assert scoring == ["score 1", "score 2", "sign 2", "release 2"]
    assert federation.order("score").participants == ("ash", "beech", "cedar")


def test_its_trees_stay_because_everybody_has_accepted_them(wood, people):
    federation = Wood(wood, people, lost={"elm": "score"})
    federation.run()
    assert federation.owners() == {*SITES}


def test_a_site_lost_while_scoring_leaves_the_same_model_with_a_trusted_third_party(wood, people):
    other = study(privacy={"secure_sum": "trusted-third-party"})
    lost = {"elm": "score"}
    assert Wood(other, people, lost=lost).run() == Wood(wood, people, lost=lost).run()


def test_a_site_lost_before_it_has_signed_means_asking_the_others_again(wood, people):
    federation = Wood(wood, people, lost={"elm": "sign"})
    federation.run()
    assert federation.steps()[3:-1] == ["score 1", "sign 1", "score 2", "sign 2", "release 2"]
    assert set(federation.outcomes) == {"ash", "beech", "cedar"}


def test_a_site_lost_before_it_has_released_voids_the_round_by_name(wood, people):
    with pytest.raises(RoundVoid, match="elm did not release"):
        simulate(wood, people, lost={"elm": "release"})


def test_a_site_lost_at_the_end_costs_nobody_else_anything(wood, people):
    result = simulate(wood, people, lost={"elm": "finish"})
    assert set(result.outcomes) == {"ash", "beech", "cedar"}
    assert result.model_digest == simulate(wood, people).model_digest


@pytest.mark.parametrize("step", ["score", "ring"])
def test_a_ring_that_loses_a_site_is_void(people, step):
    with pytest.raises(RoundVoid, match="elm was lost while the ring went round"):
        simulate(study(privacy={"secure_sum": "ring"}), people, lost={"elm": step})


def test_an_owner_lost_at_the_last_hop_of_a_ring_voids_it_and_its_trees_do_not_count_as_useless(people):
    class LostAtTheEnd(BofrfSite):
        def ring(self, order):
            if "elm" in order.packets:
                raise Refused("gone")
            return super().ring(order)

    with pytest.raises(RoundVoid, match="elm was lost"):
        Wood(study(privacy={"secure_sum": "ring"}), people, parts={"elm": LostAtTheEnd}).run()


def test_below_the_quorum_the_round_is_void_with_numbers(people):
    with pytest.raises(RoundVoid, match="3 sites are left and 4 are needed"):
        simulate(study(quorum=4), people, lost={"elm": "grow"})


@pytest.mark.parametrize("mode", ["masked", "trusted-third-party"])
def test_the_quorum_holds_while_scoring_too(people, mode):
    with pytest.raises(RoundVoid, match="3 sites are left and 4 are needed"):
        simulate(study(quorum=4, privacy={"secure_sum": mode}), people, lost={"elm": "score"})


def test_two_sites_are_told_that_only_a_trusted_third_party_can_add_up_for_them(wood):
    with pytest.raises(RoundVoid, match="2 sites are left and 3 are needed; two sites can only use"):
        simulate(wood, cohorts(wood, SITES[:2]))


def test_two_sites_can_learn_together_with_a_trusted_third_party():
    wood = study(privacy={"secure_sum": "trusted-third-party"})
    result = simulate(wood, cohorts(wood, SITES[:2]))
    assert set(result.outcomes["ash"].model.owners_) == {"ash", "beech"}


# ---------------------------------------------------------------------------------------------------------------
# Sites that are too small, or that too few can score with


def test_a_site_below_the_smallest_cohort_declines_with_the_reason_and_the_others_go_on(with_a_small_site):
    assert "smallest cohort of 30" in with_a_small_site.left_out["elm"]
    assert set(with_a_small_site.outcomes) == {"ash", "beech", "cedar"}


def test_a_tree_that_fewer_than_three_sites_can_score_is_not_in_the_round(wood):
    people = cohorts(wood, SITES[:2]) | {name: cohort(wood, seed=9, absent=(0,)) for name in SITES[2:]}
    federation = Wood(wood, people)
    federation.run()
    manifest = federation.order("finish").manifest
    forests = {name: federation.site(name).own_forest() for name in SITES}
    for owner, digest in zip(manifest.owners, federation.trees(manifest), strict=True):
        tree = forests[owner][forests[owner].digests.index(digest)]
        assert 0 not in tree.feature  # only ash and beech have x0
    assert {"cedar", "elm"} <= {*manifest.owners}


def test_a_tree_is_dropped_when_the_loss_of_a_site_leaves_too_few_that_can_score_it():
    wood = study(privacy={"secure_sum": "trusted-third-party", "fewest_scoring_sites": 3})
    people = {**cohorts(wood), "elm": cohort(wood, seed=3, absent=(0,))}
    whole, torn = Wood(wood, people), Wood(wood, people, lost={"cedar": "score"})
    whole.run()
    torn.run()
    order = torn.order("finish")
    scored = {*torn.trees(torn.order("score").manifest)}
    on_x0 = [
        digest
        for name in SITES
        for digest, tree in zip(torn.site(name).own_forest().digests, torn.site(name).own_forest(), strict=True)
        if 0 in tree.feature and digest in scored
    ]
    weight = dict(zip(torn.trees(order.manifest), order.weights, strict=True))
    assert on_x0
    assert {weight[digest] for digest in on_x0} == {0.0}  # ash and beech alone are not enough
    assert np.count_nonzero(whole.order("finish").weights) > np.count_nonzero(order.weights) > 0


# ---------------------------------------------------------------------------------------------------------------
# Sites that cheat


def refuses(taken):
    """A site that takes as many of an owner's trees, the first ones, as `taken(owner)` says."""

    class Contrary(BofrfSite):
        def check(self, order):
            verdict = super().check(order)
            kept = {owner: np.arange(len(trees)) < taken(owner) for owner, trees in verdict.accepted.items()}
            accepted, scorable = (
                {owner: trees & kept[owner] for owner, trees in one.items()}
                for one in (verdict.accepted, verdict.scorable)
            )
            return replace(verdict, accepted=accepted, scorable=scorable)

    return Contrary


@pytest.mark.parametrize("taken", [0, 2])
def test_whoever_refuses_what_most_accept_is_left_out_and_does_not_stop_the_round(wood, people, taken):
    honest = Wood(wood, {name: people[name] for name in SITES[:3]})
    honest.run()
    federation = Wood(wood, people, parts={"elm": refuses(lambda owner: 6 if owner == "elm" else taken)})
    federation.run()
    assert federation.left_out == {"elm": "refuses most of the trees that most sites accept"}
    assert federation.trees(federation.order("finish").manifest) == honest.trees(honest.order("finish").manifest)


def test_a_few_trees_that_one_site_refuses_cost_only_these(wood, people):
    federation = Wood(wood, people, parts={"elm": refuses(lambda owner: 6 if owner == "elm" else 4)})
    federation.run()
    assert federation.left_out == {}
    assert Counter(federation.order("finish").manifest.owners) == {"ash": 4, "beech": 4, "cedar": 4, "elm": 6}


def test_trees_that_nobody_else_accepts_cost_their_owner_and_not_those_who_refuse(wood, people):
    wary = refuses(lambda owner: 0 if owner == "elm" else 6)
    federation = Wood(wood, people, parts=dict.fromkeys(SITES[:3], wary))
    federation.run()
    assert federation.left_out == {}
    assert federation.owners() == {"ash", "beech", "cedar"}


def test_a_forest_in_another_site_s_name_is_not_passed_on(wood, people):
    class Impostor(BofrfSite):
        def grow(self, order):
            mine = super().grow(order)
            return replace(mine, forest=replace(mine.forest, sender="beech"))

    federation = Wood(wood, people, parts={"elm": Impostor})
    federation.run()
    assert federation.left_out["elm"] == "sent a forest in the name of beech"
    assert federation.owners() == {"ash", "beech", "cedar"}


def test_a_site_that_answers_something_else_is_left_out(wood, people):
    class Odd(BofrfSite):
        def grow(self, _order):
            return Decline("not today")

    federation = Wood(wood, people, parts={"elm": Odd})
    federation.run()
    assert federation.left_out == {"elm": "not today"}


def test_a_verdict_about_another_number_of_trees_accepts_none_of_them(wood, people):
    class Odd(BofrfSite):
        def check(self, order):
            verdict = super().check(order)
            fewer = {**verdict.accepted, "ash": verdict.accepted["ash"][1:]}
            return replace(verdict, accepted=fewer, scorable=fewer)

    federation = Wood(wood, people, parts={"elm": Odd})
    federation.run()
    assert federation.owners() == {"beech", "cedar", "elm"}
