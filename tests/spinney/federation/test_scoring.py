"""Scoring under a secure sum, with a coordinator or a site that does not keep to the rules."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.errors import Refused, RoundVoid
from spinney.federation.gathering import manifest_of
from spinney.federation.messages import MaskedCounts, OwnWeights, PlainCounts, RingOrder, Signature, Weights
from spinney.federation.seam import Decline
from spinney.forest import codec
from spinney.forest.tree import LEAF, Forest, join_forests
from tests.spinney.federation.tampered import cheats, only_for, refusal, stopped
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study

MODES = ("masked", "ring", "trusted-third-party")


@pytest.fixture(scope="module")
def people(wood):
    return cohorts(wood, rows=120)


# ---------------------------------------------------------------------------------------------------------------
# A coordinator that cheats


@pytest.mark.parametrize("mode", ["ring", "trusted-third-party"])
def test_a_site_follows_the_study_s_secure_sum_and_no_other(people, mode):
    reason = refusal(people, "score", lambda order: replace(order, mode=mode))
    assert reason == f"refused score: the study says masked, the coordinator asks for {mode}"


def test_a_participant_whose_round_key_has_not_come_is_refused(people):
    reason = refusal(people, "score", lambda order: replace(order, participants=(*order.participants, "willow")))
    assert reason == "refused score: no round key of willow has come, signed by its owner"


@pytest.mark.parametrize("mode", MODES)
def test_a_site_does_not_score_a_tree_that_hardly_anybody_else_can_score(mode):
    wood = study(privacy={"secure_sum": mode, "fewest_scoring_sites": 3}, forest={"absent": "abstain"})
    people = cohorts(wood, SITES[:2]) | {name: cohort(wood, seed=9, absent=(0,)) for name in SITES[2:]}
    federation = Wood(wood, people, lost=dict.fromkeys(SITES, "score"))
    stopped(federation)
    order = federation.order("score")
    on_x0 = [0 in tree.feature for tree in federation.site("beech").own_forest()]
    parcels = {grown.forest.sender: grown.forest for grown in federation.order("check").forests}
    manifest = manifest_of(parcels, {"beech": np.arange(len(on_x0)) == on_x0.index(True)})
    for told in (np.array([[True], [True], [False], [False]]), np.ones((4, 1), dtype=bool)):
        with pytest.raises(Refused, match="1 trees can be scored by fewer than 3 sites"):
            federation.site("ash").answer("score", replace(order, manifest=manifest, scorers=told))


def test_a_manifest_with_a_tree_that_nobody_sent_is_refused(people):
    def with_a_ghost(order):
        first, *others = order.manifest.taken
        return replace(order, manifest=replace(order.manifest, taken=(np.append(first, True), *others)))

    assert "speaks of 7 trees of ash, who sent 6" in refusal(people, "score", with_a_ghost)


def test_a_manifest_that_gives_a_forest_to_another_owner_is_refused(people):
    def swapped(order):
        first, second, *others = order.manifest.forests
        wrong = (replace(second, sender=first.sender), replace(first, sender=second.sender), *others)
        return replace(order, manifest=replace(order.manifest, forests=wrong))

    assert "these trees of ash were not looked at in this round" in refusal(people, "score", swapped)


def test_a_site_does_not_hide_among_two(people):
    reason = refusal(people, "score", lambda order: replace(order, participants=("ash", "elm")))
    assert "2 participants are too few" in reason


def test_a_coordinator_may_surround_a_site_with_two_others_unless_the_study_wants_more_in_a_sum(people):
    def answered(fewest):
        wood = study(privacy={"fewest_scoring_sites": fewest})
        federation = stopped(Wood(wood, people, lost=dict.fromkeys(SITES, "sign")))
        order = federation.order("score")
        order = replace(order, attempt=2, participants=SITES[1:], scorers=order.scorers[1:])  # as if ash had been lost
        return federation.site("elm").answer("score", order)

    assert isinstance(answered(3), MaskedCounts)
    with pytest.raises(Refused, match="3 participants are too few"):
        answered(4)


def test_a_masked_count_has_as_many_bits_as_all_rows_together_need(scoring):
    rows = sum(len(scoring.site(name).training) for name in SITES)
    order = scoring.order("score")
    assert rows < 2**order.bits < 4 * rows
    assert scoring.site("ash").answer("score", order).counts.max() < 2**order.bits


@pytest.mark.parametrize("bits", [-1, 0, 6, 65, 10**6])
def test_a_site_does_not_cut_its_counts_shorter_than_they_are(people, bits):
    assert f"{bits} bits are not enough" in refusal(people, "score", lambda order: replace(order, bits=bits))


STUMPS = {"forest": {"max_depth": 1, "absent": "abstain"}}


@pytest.fixture(scope="module")
def lacking():
    """Four sites, one of which has no first feature and another no second."""
    absent = {"cedar": (0,), "elm": (1,)}
    return {name: cohort(study(), seed=seed, absent=absent.get(name, ())) for seed, name in enumerate(SITES)}


def test_where_sites_lack_features_the_secure_sums_still_give_the_same_weights(lacking):
    weights = []
    for mode in MODES:
        federation = Wood(study(privacy={"secure_sum": mode}, **STUMPS), lacking)
        federation.run()
        weights.append(federation.order("finish").weights.tolist())
        order = federation.order("score")
        assert len(order.tally.first) > len({*order.manifest.owners})
    assert weights[0] == weights[1] == weights[2]


def test_a_site_tells_two_numbers_per_tree_and_group_and_of_its_own_trees(scoring):
    order = scoring.order("score")
    assert order.tally.groups.tolist() == sorted(order.tally.groups.tolist())
    assert len(order.tally.first) == 4  # everybody can score everything, so a group is a forest
    answer = scoring.site("ash").answer("score", order)
    assert answer.counts.shape == (len(order.manifest) + 4 + np.count_nonzero(order.manifest.of("ash")) - 1, 2)


def all_but(site, tree):
    """An order that says of one site and tree the contrary of what the site has said."""

    def changed(order):
        scorers = order.scorers.copy()
        scorers[SITES.index(site), tree] ^= True
        return replace(order, scorers=scorers)

    return changed


def test_a_coordinator_that_says_what_a_site_can_score_is_refused_by_that_site(people):
    reason = refusal(people, "score", all_but("elm", 0))
    assert "this house has said of other trees that it can score them" in reason


def test_answers_about_other_trees_are_refused(people):
    reason = refusal(people, "score", lambda order: replace(order, scorers=order.scorers[:, :-1]))
    assert "one answer per participant and tree" in reason


def test_a_site_that_is_told_otherwise_who_can_score_than_the_rest_is_in_no_sum_with_them(wood, people):
    federation = Wood(wood, people, tamper=only_for("elm", "score", all_but("ash", slice(None))))
    federation.run()
    assert federation.left_out == {"elm": "signed another list than the one it was shown"}


def test_masks_are_bound_to_who_can_score_which_tree(scoring):
    order = scoring.order("score")
    assert all_but("elm", 3)(order).about != order.about


@pytest.mark.parametrize("mode", MODES)
def test_a_site_that_hides_what_it_can_score_takes_no_tree_from_the_others(people, mode):
    class Modest(BofrfSite):
        def _scorable(self, forests):
            found = super()._scorable(forests)
            return {owner: can & (np.arange(len(can)) % 2 == 0) for owner, can in found.items()}

    wood = study(privacy={"secure_sum": mode})
    honest, liar = Wood(wood, people), Wood(wood, people, parts={"elm": Modest})
    honest.run()
    liar.run()
    assert not liar.left_out
    assert liar.trees(liar.order("finish").manifest) == honest.trees(honest.order("finish").manifest)
    counts = liar.houses["elm"].memory["fold-counts"][0].sum(axis=(0, 2))
    assert (counts > 0).tolist() == liar.order("score").scorers[3].tolist()


def test_after_its_sum_was_opened_a_site_scores_no_tree_again(finished):
    with pytest.raises(Refused, match="opened already"):
        finished.site("ash").answer("score", replace(finished.order("score"), attempt=2))


def test_within_a_round_a_site_scores_a_tree_again_on_a_new_attempt(scoring):
    order = scoring.order("score")
    first, second = (scoring.site("ash").answer("score", replace(order, attempt=number)) for number in (1, 2))
    assert not np.array_equal(first.counts, second.counts)  # other masks hide the same counts


def test_the_same_question_gets_the_same_answer_bit_for_bit(scoring):
    order = scoring.order("score")
    first, second = (scoring.site("ash").answer("score", order) for _ in range(2))
    assert np.array_equal(first.counts, second.counts)


def test_a_tree_is_never_scored_on_two_nights(wood, people, finished):
    last = finished.order("score").manifest
    tonight = Wood(wood, people, round=2, lost=dict.fromkeys(SITES, "sign"))
    tonight.houses["elm"].history = finished.houses["elm"].history
    stopped(tonight)
    tonight.post.contents |= finished.post.contents
    tonight.houses["elm"].memory["forest"] = finished.houses["elm"].memory["forest"]
    elm = tonight.site("elm")
    with pytest.raises(Refused, match="not looked at in this round"):
        elm.answer("score", replace(tonight.order("score", "elm"), manifest=last))
    tonight.houses["elm"].memory = dict(tonight.houses["elm"].memory)
    verdict = elm.answer("check", finished.order("check", "elm"))
    assert not verdict.refused
    assert not any(told.any() for told in verdict.scorable.values())


def test_a_tree_that_one_site_knows_from_an_earlier_night_is_scored_by_the_others_and_silent_there(wood, people):
    probe = Wood(wood, people)
    probe.run()
    known = probe.trees(probe.order("score").manifest)[0]
    tonight = Wood(wood, people)
    tonight.houses["elm"].history = {known: 0}
    tonight.run()
    assert tonight.trees(tonight.order("score").manifest)[0] == known
    assert np.flatnonzero(~tonight.order("score").scorers.all(axis=0)).tolist() == [0]
    assert tonight.houses["elm"].memory["fold-counts"][:, :, 0].sum() == 0
    assert tonight.houses["elm"].history[known] == 0
    assert known not in tonight.outcomes["elm"].model.forest_.digests
    assert known in tonight.outcomes["ash"].model.forest_.digests


@pytest.mark.parametrize("mode", MODES)
def test_every_scored_tree_is_remembered_in_every_mode(people, mode):
    federation = Wood(study(privacy={"secure_sum": mode}), people)
    federation.run()
    assert set(federation.houses["ash"].history) == set(federation.trees(federation.order("score").manifest))


# ---------------------------------------------------------------------------------------------------------------
# A site that cheats


@pytest.mark.parametrize(
    ("step", "answer", "reason"),
    [
        ("score", lambda _, reply: MaskedCounts(reply.counts[:-1]), "sent 32 rows of counts where 33 were asked"),
        (
            "score",
            lambda _, reply: MaskedCounts(reply.counts ^ np.uint64(1)),
            "refused sign: the roll is refused: it does not list the answer that elm gave",
        ),
        ("score", lambda _, __: Decline("I would rather not"), "I would rather not"),
        ("score", lambda _, __: Signature(bytes(64)), "answered score with something else"),
        ("sign", lambda _, __: Signature(bytes(64)), "signed another list than the one it was shown"),
    ],
)
def test_a_site_that_does_not_answer_as_asked_is_left_out_and_the_others_are_asked_again(
    wood, people, step, answer, reason
):
    federation = Wood(wood, people, parts={"elm": cheats(step, answer)})
    federation.run()
    assert federation.left_out == {"elm": reason}
    assert federation.steps()[-4:] == ["score 2", "sign 2", "release 2", "finish 1"]


@pytest.mark.parametrize("mode", ["masked", "ring"])
def test_one_asking_has_one_answer_whatever_has_changed_since(people, mode):
    lost = dict.fromkeys(SITES, "sign" if mode == "masked" else "ring")
    scoring = stopped(Wood(study(privacy={"secure_sum": mode}), people, lost=lost))
    order, house = scoring.order("score"), scoring.houses["ash"]
    scoring.site("ash").answer("score", order)
    rows = house.cohort.y.copy()
    rows[:10] = 1 - rows[:10]
    house.cohort = replace(house.cohort, y=rows)
    with pytest.raises(Refused, match="asked before, and the answer was another"):
        scoring.site("ash").answer("score", order)
    if mode == "masked":
        scoring.site("ash").answer("score", replace(order, attempt=2))


def test_counts_that_cannot_be_void_the_round_of_a_trusted_third_party(people):
    liar = cheats("score", lambda _, reply: PlainCounts(reply.counts * 1000))
    with pytest.raises(RoundVoid, match="outside 0"):
        Wood(study(privacy={"secure_sum": "trusted-third-party"}), people, parts={"elm": liar}).run()


@pytest.fixture
def totals(monkeypatch):
    """What the aggregator sees of every sum, or the owner in a ring; trees of ash come first."""
    seen = []
    monkeypatch.setattr(
        "spinney.federation.scoring.common_weights", lambda total, *_: seen.append(total) or np.zeros(len(total))
    )
    return seen


def test_the_totals_tell_the_aggregator_nearly_how_many_sick_and_well_every_site_has(totals):
    """The totals of an owner's trees lack who was in the bootstrap: on average 63 % of the owner's patients."""
    wood = study(forest={"trees": 50})
    sites = {"ash": (400, -1.0), "beech": (900, 0.3), "cedar": (260, 0.0), "elm": (1500, -2.0)}
    people = {name: cohort(wood, rows, rows, base=base) for name, (rows, base) in sites.items()}
    federation = Wood(wood, {name: replace(one, salt=f"5a17{name}") for name, one in people.items()})
    federation.run()
    (total,), owners = totals, np.asarray(federation.order("score").manifest.owners)
    cases = np.stack([total[:, 0] + total[:, 3], total[:, 1] + total[:, 2]], axis=1)
    lacking = np.stack([cases[owners == name].mean(axis=0) for name in sites])
    drawn = 1 - np.exp(-1)
    guessed = (lacking.sum(axis=0) / (len(sites) - drawn) - lacking) / drawn
    labels = [one.rows(0).y for one in people.values()]
    assert guessed == pytest.approx(np.array([[y.sum(), (y == 0).sum()] for y in labels]), rel=0.04)


def grows(forest_of):
    """A site that sends other trees than it has grown, and counts them where its first tree is counted."""

    class Forger(BofrfSite):
        def grown(self):
            super().grown()
            memory, forged = self.house.memory, forest_of(self)
            memory["forest"] = packed = codec.pack_forest(forged, self.rounding)
            memory["unseen"] = memory["unseen"][:, [0] * len(forged)]
            return packed

    return Forger


MIDDLE = 0.5 + 1 / 512  # the middle one of the study's 64 cuts


def plain_tree(feature, threshold, probability):
    return Forest(np.array(feature, np.int16), np.array(threshold), np.zeros(len(feature), bool), np.array(probability))


@pytest.mark.parametrize("absent", ["abstain", "missing"])
@pytest.mark.parametrize("mode", ["masked", "ring"])
def test_who_makes_trees_and_sees_totals_can_read_a_site_whose_trees_abstain_for_a_feature(totals, mode, absent):
    wood = study(privacy={"secure_sum": mode}, forest={"absent": absent})
    people = cohorts(wood, SITES[:3]) | {"elm": cohort(wood, seed=3, absent=(3,))}
    one = plain_tree([0, LEAF, LEAF], [MIDDLE, 0.0, 0.0], [0.0, 0.2, 0.8])
    twin = plain_tree([0, LEAF, 3, LEAF, LEAF], [MIDDLE, 0.0, MIDDLE, 0.0, 0.0], [0.0, 0.2, 0.0, 0.8, 0.81])
    federation = Wood(wood, people, parts={"ash": grows(lambda _: join_forests([one, twin]))})
    federation.run()
    counts = federation.houses["elm"].memory["fold-counts"][0].sum(axis=0)
    told = totals[0][0] - totals[0][1]
    assert np.array_equal(told, counts[0]) == (absent == "abstain")
    assert absent == "abstain" or not told.any()  # both trees are walked there: the totals are the same


def test_who_makes_trees_and_sees_totals_can_read_a_site_that_is_missing_on_another_night(wood, people, totals):
    def unnoticed(site):
        """The same trees, but for where missing values go, and there are none."""
        old = codec.unpack_forest(first.houses["ash"].memory["forest"], site.rounding, site.limits)
        return replace(old, missing_left=old.missing_left ^ (old.feature != LEAF))

    first = Wood(wood, people, parts={"ash": grows(lambda site: site.own_forest())})
    first.run()
    second = Wood(wood, people, round=2, parts={"ash": grows(unnoticed)}, lost={"elm": "score"})
    for name in SITES:
        second.houses[name].history = first.houses[name].history
    second.run()
    own = [federation.houses["ash"].memory["fold-counts"][0].sum(axis=0)[:6] for federation in (first, second)]
    foreign = [total[:6] - counted for total, counted in zip(totals, own, strict=True)]
    assert np.array_equal(foreign[0] - foreign[1], first.houses["elm"].memory["fold-counts"][0].sum(axis=0)[:6])


def test_only_rounded_weights_and_a_rounded_map_reach_the_sites(finished):
    order = finished.order("finish")
    assert {field.name for field in fields(order)} == {"manifest", "weights", "map", "linear"}
    assert not order.linear  # no companion is fitted here
    assert order.weights.tolist() == np.round(order.weights, 2).tolist()
    assert {field.name for field in fields(order.map)} == {"sites", "places", "clusters", "shown"}
    assert order.map.places.tolist() == np.round(order.map.places, 2).tolist()


@pytest.mark.parametrize("wrong", [np.nan, 1.5, -1.5])
def test_weights_that_cannot_be_are_refused_by_the_site(finished, wrong):
    order = finished.order("finish")
    weights = np.where(np.arange(len(order.weights)) == 0, wrong, order.weights)
    with pytest.raises(Refused, match=r"one weight in -1\.\.1 per tree"):
        finished.site("ash").answer("finish", replace(order, weights=weights))


def test_weights_for_other_trees_than_the_manifest_s_are_refused(finished):
    order = finished.order("finish")
    with pytest.raises(Refused, match="per tree of the manifest"):
        finished.site("ash").answer("finish", replace(order, weights=order.weights[1:]))


# ---------------------------------------------------------------------------------------------------------------
# The ring


@pytest.fixture
def ring(people):
    """A ring that stops after its first packets were made."""
    return stopped(Wood(study(privacy={"secure_sum": "ring"}), people, lost=dict.fromkeys(SITES, "ring")))


def test_a_ring_goes_round_once(ring):
    order = ring.order("score")
    smaller = replace(order, participants=("ash", "beech", "cedar"), scorers=order.scorers[:3], attempt=2)
    with pytest.raises(Refused, match="a ring goes round once"):
        ring.site("ash").answer("score", smaller)


def test_a_site_adds_its_counts_only_among_the_neighbours_that_it_has_agreed_to(ring):
    order = ring.order("ring", "beech")
    fewer = replace(order.binding, participants=("ash", "beech", "cedar"))
    with pytest.raises(Refused, match="not the ring that this house has joined"):
        ring.site("beech").answer("ring", replace(order, binding=fewer))


def test_a_packet_that_does_not_come_from_the_neighbour_before_is_refused(ring):
    """Otherwise the owner could hand its packet to the site before it, and read off what that site has added."""
    order = ring.order("ring", "elm")
    parcel = ring.houses["ash"].mail.post(b"\0" * 32, ["elm"])
    with pytest.raises(Refused, match="comes from ash and not from cedar"):
        ring.site("elm").answer("ring", replace(order, packets={"ash": parcel}))


def test_a_site_adds_its_counts_to_an_owner_s_packet_once(ring):
    order = ring.order("ring", "beech")
    ring.site("beech").answer("ring", order)
    content = ring.houses["beech"].open(order.packets["ash"])
    again = ring.houses["ash"].mail.post(content[::-1], ["beech"])
    with pytest.raises(Refused, match="the packet of ash came twice"):
        ring.site("beech").answer("ring", replace(order, packets={"ash": again}))


def test_a_packet_of_the_wrong_size_is_refused(ring):
    order = ring.order("ring", "beech")
    parcel = ring.houses["ash"].mail.post(b"\0" * 7, ["beech"])
    with pytest.raises(Refused, match="has 7 bytes for"):
        ring.site("beech").answer("ring", replace(order, packets={"ash": parcel}))


def test_a_sum_that_cannot_be_is_not_turned_into_weights_by_its_owner(people):
    class Liar(BofrfSite):
        def _counts_of(self, owner):
            return super()._counts_of(owner) - 10**6

    with pytest.raises(RoundVoid, match="was lost while the ring went round"):
        Wood(study(privacy={"secure_sum": "ring"}), people, parts={"elm": Liar}).run()


def test_an_owner_with_too_few_weights_voids_the_ring(people):
    class Miser(BofrfSite):
        def ring(self, order: RingOrder):
            reply = super().ring(order)
            return OwnWeights(reply.weights[:1]) if isinstance(reply, OwnWeights) else reply

    with pytest.raises(RoundVoid, match="elm sent 1 weights"):
        Wood(study(privacy={"secure_sum": "ring"}), people, parts={"elm": Miser}).run()


def test_a_round_ends_once_so_that_test_rows_are_not_asked_again_and_again():
    wood = Wood(study(), cohorts(study()))
    wood.run()
    manifest = wood.order("finish").manifest
    with pytest.raises(Refused, match="has ended here with other weights"):
        wood.site("ash").answer("finish", Weights(manifest, np.eye(len(manifest))[0]))
