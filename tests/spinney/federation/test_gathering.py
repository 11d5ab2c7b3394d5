"""A round with sites that get lost, decline or cheat: who is left out, what is refused, and that the others go on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.errors import Refused, RoundVoid
from spinney.federation import secure_sum
from spinney.federation.forest_site import forest_digest, seed_of
from spinney.federation.messages import GrownForest, GrowOrder, Invitation, Manifest
from spinney.federation.seam import Decline, Message, Parcel, SiteContext, SitePart
from spinney.forest import codec
from spinney.forest.export import Rounding
from spinney.forest.tree import join
from spinney.simulate import LocalMail, simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study


@pytest.fixture(scope="module")
def wood():
    return study()


@pytest.fixture(scope="module")
def people(wood):
    return cohorts(wood)


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
# Floors that the site itself keeps


@pytest.fixture(scope="module")
def with_a_small_site(wood, people):
    federation = Wood(wood, {**people, "elm": cohort(wood, 30, 3)})
    federation.run()
    return federation


def test_a_site_below_the_smallest_cohort_declines_with_the_reason_and_the_others_go_on(with_a_small_site):
    assert "smallest cohort of 30" in with_a_small_site.left_out["elm"]
    assert set(with_a_small_site.outcomes) == {"ash", "beech", "cedar"}


def test_a_site_that_has_declined_does_not_grow_whatever_the_coordinator_says(with_a_small_site):
    with pytest.raises(Refused, match="too early"):
        with_a_small_site.site("elm").answer("grow", GrowOrder(("ash",)))


def drawn(wood, people, salt):
    """Which patients of ash each of its trees was not grown on."""
    federation = Wood(wood, {**people, "ash": replace(people["ash"], salt=salt)})
    federation.run()
    return federation.houses["ash"].memory["unseen"]


def test_nobody_without_the_house_s_salt_can_repeat_its_draws(wood, people):
    known, one, other = (drawn(wood, people, salt) for salt in ("", "5a17", "5a18"))
    assert np.array_equal(one, drawn(wood, people, "5a17"))  # a night that was killed goes on with the same trees
    for guess in (known, other):
        alike = np.mean(guess == one)
        assert abs(alike - (0.368**2 + 0.632**2)) < 0.1  # as for two draws that know nothing of each other


def test_a_salted_seed_can_not_be_tried_out(wood):
    seeds = {seed_of(wood, round_, "ash", "5a17") for round_ in range(100)}
    assert min(seeds).bit_length() > 100
    assert max(seed_of(wood, round_, "ash", "") for round_ in range(100)) < 2**32


def test_draws_of_one_study_tell_nothing_about_those_of_another_with_the_same_patients(wood):
    other = wood.model_copy(update={"name": "copse"})
    assert seed_of(wood, 1, "ash", "5a17") != seed_of(other, 1, "ash", "5a17")
    assert seed_of(wood, 1, "ash", "") == seed_of(other, 1, "ash", "")  # nothing to hide, and comparable


def test_the_smallest_cohort_counts_patients_not_rows(wood):
    federation = Wood(wood, {"ash": cohort(wood, 100, rows_per_patient=4)})
    reply = federation.site("ash").answer("join", Invitation(1))
    assert isinstance(reply, Decline)
    assert "smallest cohort" in reply.reason


def test_a_description_has_rounded_rows_and_the_means_of_scaled_features(wood, people):
    federation = Wood(wood, people)
    reply = federation.site("ash").answer("join", Invitation(1))
    training = people["ash"].rows(0)
    assert reply.rows == round(len(training), -1)
    assert reply.vector == pytest.approx(training.X.mean(axis=0), abs=5e-4)
    assert reply.vector.tolist() == np.round(reply.vector, 3).tolist()


def test_a_feature_that_a_site_does_not_have_is_unknown_in_its_vector(wood):
    federation = Wood(wood, {"ash": cohort(wood, absent=(2,))})
    reply = federation.site("ash").answer("join", Invitation(1))
    assert np.flatnonzero(np.isnan(reply.vector)).tolist() == [2]
    assert reply.present.tolist() == [True, True, False, True]


def test_a_house_refuses_an_invitation_to_another_round(wood, people):
    with pytest.raises(Refused, match="round 2 was opened, this house is in round 1"):
        Wood(wood, people).site("ash").answer("join", Invitation(2))


def test_a_step_that_the_algorithm_does_not_have_is_refused(wood, people):
    with pytest.raises(Refused, match="not a step"):
        Wood(wood, people).site("ash").answer("own_forest", Invitation(1))


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


def sends(content):
    """A site that posts something else than what it has grown."""

    class Cheat(BofrfSite):
        def grow(self, order):
            self.grown()
            return GrownForest(self.house.mail.post(content(self), order.peers), forest_digest(self.own_forest()))

    return Cheat


def garbage(_site):
    return b"SPNY" + bytes(range(256)) * 4


def another_grid(site):
    return codec.pack_forest(site.own_forest(), Rounding(site.rounding.steps, 2 * site.rounding.probability))


def too_many_trees(site):
    mine = site.own_forest()
    return codec.pack_forest(join([mine, mine]), site.rounding)


@pytest.mark.parametrize("forgery", [garbage, another_grid, too_many_trees])
def test_a_forged_forest_costs_its_sender_and_not_the_round(wood, people, forgery):
    federation = Wood(wood, people, parts={"elm": sends(forgery)})
    federation.run()
    assert federation.owners() == {"ash", "beech", "cedar"}
    assert set(federation.outcomes) == {*SITES}  # its own forest still serves its patients
    verdict = federation.site("ash").answer("check", federation.order("check"))
    assert set(verdict.refused) == {"elm"}


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


def test_a_copy_of_one_s_own_tree_has_no_second_vote(wood, people):
    class Twins(BofrfSite):
        def grown(self):
            super().grown()
            self.house.memory["forest"] = packed = codec.pack_forest(join([self.own_forest()[0]] * 4), self.rounding)
            return packed

    federation = Wood(wood, people, parts={"elm": Twins})
    federation.run()
    assert federation.order("finish").manifest.owners.count("elm") == 1


@pytest.mark.parametrize("thief", ["ant", "zebra"])
def test_whoever_copies_another_site_s_trees_has_none_in_the_round_and_the_victim_keeps_its_own(wood, people, thief):
    honest = Wood(wood, people)
    honest.run()
    stolen = honest.houses["beech"].memory["forest"]  # the same seed grows the same forest below

    class Thief(BofrfSite):
        def grown(self):
            super().grown()
            self.house.memory["forest"] = stolen
            return stolen

    federation = Wood(wood, {**people, thief: cohort(wood, seed=8)}, parts={thief: Thief})
    federation.run()
    assert thief not in federation.owners()
    assert federation.outcomes["beech"].auroc["local"] == honest.outcomes["beech"].auroc["local"]


def test_a_forest_in_another_site_s_name_is_not_passed_on(wood, people):
    class Impostor(BofrfSite):
        def grow(self, order):
            mine = super().grow(order)
            return replace(mine, forest=replace(mine.forest, sender="beech"))

    federation = Wood(wood, people, parts={"elm": Impostor})
    federation.run()
    assert federation.left_out["elm"] == "sent a forest in the name of beech"
    assert federation.owners() == {"ash", "beech", "cedar"}


def test_two_forests_of_one_sender_are_refused(wood, people):
    federation = Wood(wood, people)
    federation.run()
    order = federation.order("check")
    with pytest.raises(Refused, match="two forests of one site"):
        federation.site("ash").answer("check", replace(order, forests=order.forests * 2))


def test_a_site_that_answers_something_else_is_left_out(wood, people):
    class Odd(BofrfSite):
        def grow(self, _order):
            return Decline("not today")

    federation = Wood(wood, people, parts={"elm": Odd})
    federation.run()
    assert federation.left_out == {"elm": "not today"}


def test_a_parcel_is_readable_by_its_recipients_only():
    post = LocalMail()
    parcel = post.of("ash").post(b"trees", ["beech"])
    assert post.of("beech").fetch(parcel) == post.of("ash").fetch(parcel) == b"trees"
    with pytest.raises(Refused, match="no parcel of ash for cedar"):
        post.of("cedar").fetch(parcel)


def test_nobody_can_make_another_site_s_parcel_unreadable_by_posting_the_same():
    post = LocalMail()
    parcel = post.of("ash").post(b"trees", ["beech", "cedar"])
    post.of("cedar").post(b"trees", [])
    assert post.of("beech").fetch(parcel) == b"trees"


def test_a_parcel_that_is_not_what_was_announced_is_refused(wood, people):
    post = LocalMail()
    parcel = post.of("ash").post(b"trees", ["beech"])
    post.contents[parcel.sender, parcel.digest] = (frozenset({"beech"}), b"other")
    house = SiteContext("beech", wood, 1, people["beech"], post.of("beech"), bytes, lambda *_: True)
    with pytest.raises(Refused, match="not what was announced"):
        house.open(parcel)


def test_a_parcel_above_the_limit_is_refused_unread(wood, people):
    federation = Wood(wood, people)
    huge = Parcel("beech", "0" * 64, 10**9)
    with pytest.raises(Refused, match="more than the limit"):
        federation.site("ash").opened(huge)


def test_a_step_asked_with_the_wrong_kind_of_order_is_refused() -> None:
    class Polite(SitePart):
        steps = frozenset({"greet"})

        def greet(self, order: Decline) -> Decline:
            return order

    with pytest.raises(Refused, match="greet is asked with Message, not Decline"):
        Polite(house=None).answer("greet", Message())  # type: ignore[arg-type]


@pytest.mark.parametrize("senders", [(), ("ash",), ("ash", "ash"), ("elm", "ash")])
def test_a_manifest_names_every_owner_once_and_in_order(senders) -> None:
    parcels = tuple(Parcel(sender, "0" * 64, 1) for sender in senders)
    with pytest.raises(Refused, match="of each forest once"):
        Manifest(parcels, (np.ones(2, dtype=bool), np.ones(2, dtype=bool)))


def test_other_trees_than_announced_are_refused(wood, people):
    class Liar(BofrfSite):
        def grow(self, order):
            return replace(super().grow(order), trees="0" * 64)

    federation = Wood(wood, people, parts={"elm": Liar})
    federation.run()
    assert federation.owners() == {"ash", "beech", "cedar"}
    verdict = federation.site("ash").answer("check", federation.order("check"))
    assert verdict.refused == {"elm": "these are other trees than announced"}


def test_a_house_knows_only_those_whose_round_key_and_features_are_signed_by_themselves(wood, people):
    federation = Wood(wood, people)
    federation.run()
    house = federation.houses["ash"]
    card = house.cards["beech"]
    forged = secure_sum.public_key(secure_sum.new_key())
    for wrong in (replace(card, key=forged), replace(card, present=~card.present), replace(card, signature=b"")):
        with pytest.raises(Refused, match="of beech are not signed by beech"):
            house.introduce({"beech": wrong})
    with pytest.raises(Refused, match="of cedar are not signed by cedar"):
        house.introduce({"cedar": card})
    assert house.cards["beech"] is card


def test_a_round_key_of_an_earlier_night_is_refused(wood, people):
    before = Wood(wood, people)
    before.run()
    tonight = Wood(wood, people, round=2)
    tonight.houses["ash"].verify = before.houses["ash"].verify  # even where the signing key is still the same
    with pytest.raises(Refused, match="are not signed by"):
        tonight.houses["ash"].introduce(before.houses["ash"].cards)


def test_a_verdict_about_another_number_of_trees_accepts_none_of_them(wood, people):
    class Odd(BofrfSite):
        def check(self, order):
            verdict = super().check(order)
            fewer = {**verdict.accepted, "ash": verdict.accepted["ash"][1:]}
            return replace(verdict, accepted=fewer, scorable=fewer)

    federation = Wood(wood, people, parts={"elm": Odd})
    federation.run()
    assert federation.owners() == {"beech", "cedar", "elm"}
