"""A site's own part: floors that it keeps whatever the coordinator says, and what it refuses of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.errors import Refused
from spinney.federation.forest_site import forest_digest, seed_of
from spinney.federation.messages import GrownForest, GrowOrder, Invitation
from spinney.federation.seam import Decline, Parcel
from spinney.forest import codec
from spinney.forest.export import Rounding
from spinney.forest.tree import join_forests
from tests.spinney.federation.tampered import stopped
from tests.spinney.in_process import SITES, Wood, cohort


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
    return codec.pack_forest(site.own_forest(), Rounding(site.rounding.cuts, 2 * site.rounding.probability))


def too_many_trees(site):
    mine = site.own_forest()
    return codec.pack_forest(join_forests([mine, mine]), site.rounding)


@pytest.mark.parametrize("forgery", [garbage, another_grid, too_many_trees])
def test_a_forged_forest_costs_its_sender_and_not_the_round(wood, people, forgery):
    federation = Wood(wood, people, parts={"elm": sends(forgery)})
    federation.run()
    assert federation.owners() == {"ash", "beech", "cedar"}
    assert set(federation.outcomes) == {*SITES}  # its own forest still serves its patients
    verdict = federation.site("ash").answer("check", federation.order("check"))
    assert set(verdict.refused) == {"elm"}


def test_a_copy_of_one_s_own_tree_has_no_second_vote(wood, people):
    class Twins(BofrfSite):
        def grown(self):
            super().grown()
            self.house.memory["forest"] = packed = codec.pack_forest(
                join_forests([self.own_forest()[0]] * 4), self.rounding
            )
            return packed

    federation = Wood(wood, people, parts={"elm": Twins})
    federation.run()
    assert federation.order("finish").manifest.owners.count("elm") == 1


@pytest.mark.parametrize("thief", ["ant", "zebra"])
def test_whoever_copies_another_site_s_trees_takes_none_of_them_out_of_the_round(wood, people, thief):
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
    assert not federation.left_out
    manifest = federation.order("finish").manifest
    assert sorted(federation.trees(manifest)) == sorted(honest.trees(honest.order("finish").manifest))  # each once
    assert 0 < manifest.owners.count(thief) < 6  # it can't choose whose name they have
    assert federation.outcomes["beech"].auroc["local"] == honest.outcomes["beech"].auroc["local"]


def test_the_victim_of_a_copy_does_not_score_its_own_tree_as_another_s(wood, people):
    """It would know the patients that it was grown on."""
    federation = Wood(wood, {**people, "ant": cohort(wood, seed=8)}, lost=dict.fromkeys((*SITES, "ant"), "score"))
    stopped(federation)
    beech = federation.site("beech")
    own = beech.own_forest()
    told = beech._scorable({"ant": own, "beech": own})
    assert told["beech"].any()
    assert not told["beech"].all()
    assert not told["ant"].any()
    others = federation.site("ash")._scorable({"ant": own, "beech": own})
    assert np.array_equal(others["ant"], ~others["beech"])


def test_two_forests_of_one_sender_are_refused(wood, people):
    federation = Wood(wood, people)
    federation.run()
    order = federation.order("check")
    with pytest.raises(Refused, match="two forests of one site"):
        federation.site("ash").answer("check", replace(order, forests=order.forests * 2))


def test_a_parcel_above_the_limit_is_refused_unread(wood, people):
    federation = Wood(wood, people)
    huge = Parcel("beech", "0" * 64, 10**9)
    with pytest.raises(Refused, match="more than the limit"):
        federation.site("ash").opened(huge)


def test_other_trees_than_announced_are_refused(wood, people):
    class Liar(BofrfSite):
        def grow(self, order):
            return replace(super().grow(order), trees="0" * 64)

    federation = Wood(wood, people, parts={"elm": Liar})
    federation.run()
    assert federation.owners() == {"ash", "beech", "cedar"}
    verdict = federation.site("ash").answer("check", federation.order("check"))
    assert verdict.refused == {"elm": "announced"}
