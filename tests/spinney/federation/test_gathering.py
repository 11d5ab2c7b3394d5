"""A round with sites that get lost, decline or cheat: who is left out, what is refused, and that the others go on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.errors import Refused, RoundVoid
from spinney.federation.messages import Verdict
from spinney.federation.seam import Decline
from spinney.trial.simulate import simulate
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


def test_its_trees_stay_because_enough_others_can_score_them(wood, people):
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


def test_a_round_without_enough_sites_says_who_was_left_out_and_why(wood, people):
    few = {**people, "elm": people["elm"].at(np.arange(20))}
    with pytest.raises(RoundVoid) as void:
        simulate(study(quorum=4), few, lost={"beech": "grow"})
    assert str(void.value) == (
        "3 sites are left and 4 are needed; left out: elm: fewer training patients than the smallest cohort of 30"
    )
    with pytest.raises(RoundVoid) as void:
        simulate(wood, few, lost={"beech": "grow"})
    assert "; left out: beech: no answer to grow; elm: fewer training" in str(void.value)


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


def test_a_tree_that_fewer_than_three_sites_can_score_is_not_in_the_round():
    wood = study(forest={"absent": "abstain"})
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
    privacy = {"secure_sum": "trusted-third-party", "fewest_scoring_sites": 3}
    wood = study(privacy=privacy, forest={"absent": "abstain"})
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


def says(change):
    """A site whose verdict is another than it found: `change(refused, scorable)` changes a copy of it."""

    class Contrary(BofrfSite):
        def check(self, order):
            verdict = super().check(order)
            refused, scorable = {**verdict.refused}, {**verdict.scorable}
            change(refused, scorable)
            return Verdict({owner: told for owner, told in scorable.items() if owner not in refused}, refused)

    return Contrary


def refuses(*rivals, rule="depth"):
    return says(lambda refused, _: refused.update(dict.fromkeys(rivals, rule)))


def spoilt(packed):
    """A forest whose last byte was lost."""
    return packed[:-1]


class Spoiler(BofrfSite):
    """Sends bytes that are no forest."""

    def grow(self, order):
        reply = super().grow(order)
        return replace(reply, forest=self.house.mail.post(spoilt(self.house.memory["forest"]), order.peers))


MANY = (*SITES, "fir")


@pytest.mark.parametrize("names", [SITES, MANY])
@pytest.mark.parametrize("rivals", [("ash",), ("ash", "beech", "cedar")])
def test_whoever_refuses_trees_without_a_reason_that_others_find_is_left_out_and_nobody_else_loses(wood, names, rivals):
    people, last = cohorts(wood, names), names[-1]
    honest = Wood(wood, {name: people[name] for name in names[:-1]})
    honest.run()
    federation = Wood(wood, people, parts={last: refuses(*rivals)})
    federation.run()
    others = len(names) - 2
    assert federation.left_out == {
        last: f"refuses the trees of {rivals[-1]} (a tree is deeper than the study allows, or its shape is broken), "
        f"and {others} others find nothing wrong"
    }
    assert federation.trees(federation.order("finish").manifest) == honest.trees(honest.order("finish").manifest)


@pytest.mark.parametrize("names", [SITES, MANY])
def test_a_forest_that_breaks_a_rule_costs_its_owner_and_not_those_who_refuse(wood, names):
    last = names[-1]
    federation = Wood(wood, cohorts(wood, names), parts={last: Spoiler})
    federation.run()
    assert federation.left_out == {}
    assert federation.owners() == {*names[:-1]}


@pytest.mark.parametrize("names", [SITES, MANY])
def test_who_takes_a_forest_that_breaks_a_rule_keeps_it_in_for_nobody(wood, names):
    last = names[-1]
    taken = says(lambda refused, scorable: (refused.pop(last), scorable.update({last: np.ones(6, dtype=bool)})))
    federation = Wood(wood, cohorts(wood, names), parts={last: Spoiler, "ash": taken})
    federation.run()
    assert federation.left_out == {}
    assert federation.owners("beech") == {*names[:-1]}


@pytest.mark.parametrize("names", [SITES, MANY])
@pytest.mark.parametrize("mode", ["masked", "ring", "trusted-third-party"])
def test_one_site_that_says_it_can_not_read_a_rival_s_trees_costs_the_rival_nothing(names, mode):
    wood = study(privacy={"secure_sum": mode, "fewest_scoring_sites": 3})

    class Blind(BofrfSite):
        def opened(self, parcel):
            if parcel.sender == "ash":
                raise Refused("the parcel is damaged, it says")
            return super().opened(parcel)

    federation = Wood(wood, cohorts(wood, names), parts={names[-1]: Blind})
    federation.run()
    assert federation.left_out == {}
    assert Counter(federation.order("finish").manifest.owners) == dict.fromkeys(names, 6)
    assert "ash" not in federation.outcomes[names[-1]].model.owners_  # there they don't vote
    assert "ash" in federation.outcomes["beech"].model.owners_
    assert {*federation.outcomes} == {*names}


@pytest.mark.parametrize("names", [SITES, MANY])
def test_trees_that_were_sealed_for_some_only_make_nobody_a_liar(wood, names):
    class Partial(BofrfSite):
        def grow(self, order):
            sealed = super().grow(order)
            left = [peer for peer in order.peers if peer != "beech"]
            self.house.mail.box.contents.pop((self.house.name, sealed.forest.digest))
            return replace(sealed, forest=self.house.mail.post(self.house.memory["forest"], left))

    federation = Wood(wood, cohorts(wood, names), parts={names[-1]: Partial})
    federation.run()
    assert federation.left_out == {}
    assert federation.owners() == {*names}
    assert names[-1] not in federation.outcomes["beech"].model.owners_


@pytest.mark.parametrize("names", [SITES, MANY])
def test_no_verdict_of_one_site_takes_a_tree_of_another_out_of_the_round(wood, names):
    """Whatever it says: trees of the others stay, and so do the others."""
    last, rivals = names[-1], names[:-1]
    people = cohorts(wood, names)
    honest = Wood(wood, {name: people[name] for name in rivals})
    honest.run()
    there = {*honest.trees(honest.order("finish").manifest)}
    ways = [
        refuses(*rivals, rule="unreadable"),
        refuses(*names),
        says(lambda _, scorable: scorable.clear()),
        says(lambda _, scorable: scorable.update({name: ~told for name, told in scorable.items()})),
        says(lambda _, scorable: scorable.update({name: told[1:] for name, told in scorable.items()})),
    ]
    for way in ways:
        federation = Wood(wood, people, parts={last: way})
        federation.run()
        assert {*federation.left_out} <= {last}
        assert there <= {*federation.trees(federation.order("finish").manifest)}


def test_a_reason_that_is_no_rule_is_not_passed_on(wood, people):
    federation = Wood(wood, people, parts={"elm": refuses("ash", rule="I do not like them")})
    federation.run()
    assert "a reason is a rule that all sites can check" in federation.left_out["elm"]


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
