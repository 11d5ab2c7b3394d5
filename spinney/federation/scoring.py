"""Scoring under a secure sum: the site's steps, and the coordinator's way to one weight per tree.

`masked` (default): the coordinator learns the sum of all sites' counts and nobody's own. `ring`: the owner of a tree
learns its total. `trusted-third-party`: the coordinator sees counts. Same counts, same weights, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.choice.weigh import common_weights
from spinney.errors import Refused, RoundVoid
from spinney.federation import secure_sum
from spinney.federation.forest_site import ForestSite, askable
from spinney.federation.gathering import Cluster, able, answers, ask, manifest_of, require, without
from spinney.federation.messages import (
    Description,
    Manifest,
    MaskedCounts,
    OwnWeights,
    PlainCounts,
    ReleaseOrder,
    RingOrder,
    RingPackets,
    ScoreOrder,
    SignOrder,
    Weights,
)
from spinney.federation.seam import Card, Federation, Message, Parcel
from spinney.federation.secure_sum import Binding
from spinney.federation.summing import (
    ANSWERED_BEFORE,
    Subject,
    check_order,
    hide,
    masked_total,
    release_sum,
    sign_roll,
    well_formed,
)
from spinney.forest.score import Counts, abstains
from spinney.forest.tree import Forest
from spinney.rows.describe import most_rows, rounded_rows

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]
STEP = "score"


class ScoringSite(ForestSite):
    """The steps of the three secure sums."""

    steps = frozenset({"join", "grow", "check", "score", "sign", "release", "ring", "finish"})

    def score(self, order: ScoreOrder) -> Message:
        """Count at home, hide the counts, send."""
        house = self.house
        cards = check_order(house, order)
        if order.mode == "masked":
            return self._masked(order, cards)
        counts = self._counts(order, cards)
        return PlainCounts(counts) if order.mode == "trusted-third-party" else self._start_ring(order, counts)

    def _masked(self, order: ScoreOrder, cards: Mapping[str, Card]) -> Message:
        house, privacy = self.house, self.house.study.privacy
        # by what the coordinator knows of the rows, so that a refusal tells it nothing
        secure_sum.check_bits(order.bits, most_rows(rounded_rows(len(self.training), privacy), privacy))
        counts, tally = self._counts(order, cards), order.tally
        rows = tally.told(counts, house.name)
        return MaskedCounts(hide(house, rows, cards, self._binding(order), bits=order.bits, together=tally.together))

    def check_weighed(self, order: Weights) -> None:
        """The weights are of trees that this site helped to score; a guest did not, and has not told it."""
        if self.house.resumes:
            return
        trees, can = self.manifest_forest(order.manifest).digests, self.scorable(order.manifest)
        weighed = [tree for tree, weight, here in zip(trees, order.weights, can, strict=False) if weight and here]
        strange = sum(self.house.history.get(tree) != self.house.round for tree in weighed)
        if strange:
            raise Refused(f"{strange} trees have a weight and were not scored here in this round")

    def sign(self, order: SignOrder) -> Message:
        """Sign a list only if it has what this house sent."""
        return sign_roll(self.house, order)

    def release(self, order: ReleaseOrder) -> Message:
        """Let one sum be opened, once, if everybody on the list has signed it."""
        return release_sum(self.house, order, guarded=True)

    def ring(self, order: RingOrder) -> Message:
        """Add this house's counts to every packet that comes by; at the end take the own noise off the own packet."""
        house = self.house
        if house.recall("ring") != order.binding.digest:  # other participants would be other neighbours
            raise Refused("this is not the ring that this house has joined")
        names = order.binding.participants
        before = names[names.index(house.name) - 1]
        packets = {owner: self._packet(owner, parcel, before) for owner, parcel in sorted(order.packets.items())}
        if {*packets} == {house.name}:
            return self._finish_ring(order, packets[house.name])
        if house.name in packets:
            raise Refused("the own packet came before the end of the ring")
        added = {owner: secure_sum.ring_add(packet, self._counts_of(owner)) for owner, packet in packets.items()}
        return self._passed_on(added, order.binding)

    def _start_ring(self, order: ScoreOrder, counts: Counts) -> Message:
        house, binding = self.house, self._binding(order)
        if house.memory.setdefault("ring", binding.digest) != binding.digest:
            raise Refused("a ring goes round once: a second one with fewer sites would show the site that is missing")
        if not np.array_equal(house.memory.setdefault("counts", counts), counts):
            raise Refused(ANSWERED_BEFORE)
        house.memory["owners"] = np.array(order.manifest.owners)
        if house.name not in order.manifest.owners:  # no packet of its own; it adds to those that come by
            return RingPackets({})
        seed = house.memory.setdefault("ring-seed", secure_sum.new_seed())
        packet = secure_sum.ring_start(self._counts_of(house.name), seed, binding, house.name)
        return self._passed_on({house.name: packet}, binding)

    def _passed_on(self, packets: Mapping[str, secure_sum.Noisy], binding: Binding) -> Message:
        names, post = binding.participants, self.house.mail.post
        following = names[(names.index(self.house.name) + 1) % len(names)]
        return RingPackets(
            {owner: post(packet.astype("<u8").tobytes(), [following]) for owner, packet in packets.items()}
        )

    def _packet(self, owner: str, parcel: Parcel, before: str) -> secure_sum.Noisy:
        """What the neighbour before has passed on, once: an owner who hands it in here could read what is added."""
        if parcel.sender != before:
            raise Refused(f"the packet of {owner} comes from {parcel.sender} and not from {before}")
        if self.house.memory.setdefault(f"ring-{owner}", parcel.digest) != parcel.digest:
            raise Refused(f"the packet of {owner} came twice")
        content, cells = self.house.open(parcel), self._counts_of(owner).size
        if len(content) != 8 * cells:
            raise Refused(f"the packet of {owner} has {len(content)} bytes for {cells} counts")
        return np.frombuffer(content, dtype="<u8").reshape(-1, 4)

    def _finish_ring(self, order: RingOrder, packet: secure_sum.Noisy) -> Message:
        house = self.house
        total = secure_sum.ring_finish(packet, house.recall("ring-seed"), order.binding, house.name)
        try:
            _check(total, order.most)
        except RoundVoid as reason:
            raise Refused(str(reason)) from None
        return OwnWeights(common_weights(total, house.study.privacy.weight_precision, house.study.taus))

    def _counts_of(self, owner: str) -> Counts:
        return np.asarray(self.house.memory["counts"][self.house.memory["owners"] == owner])

    def _counts(self, order: ScoreOrder, cards: Mapping[str, Card]) -> Counts:
        """This house's counts of the trees that it can score, 0 of the others; none after the sum was opened."""
        house = self.house
        if "released" in house.memory:
            raise Refused("this round's sum was opened already; its trees are not scored again")
        forest, can = self.manifest_forest(order.manifest), self.scorable(order.manifest)
        self._check_scorers(order, forest, cards)
        mine = np.flatnonzero(order.manifest.of(house.name))
        counts = self.own_counts(forest, order.manifest.owners, house.recall("unseen")[:, mine])
        counts[:, :, ~can] = 0
        house.memory["scored"], house.memory["fold-counts"] = order.manifest.digest, counts
        house.history.update(dict.fromkeys(np.asarray(forest.digests)[can].tolist(), house.round))
        return np.asarray(counts[0].sum(axis=0))

    def _binding(self, order: ScoreOrder) -> Binding:
        return Binding(self.house.study.digest, self.house.round, STEP, order.attempt, order.participants, order.about)

    def _check_scorers(self, order: ScoreOrder, forest: Forest, cards: Mapping[str, Card]) -> None:
        """The sum of a tree that hardly anybody can score is hardly a sum.

        Nobody but a site itself knows what else it can't score, such as a tree that it scored on an earlier night. So
        each looks for its own answers, and all must be told the same, or their masks don't cancel.
        """
        fewest, names = self.house.study.privacy.fewest_scorers, order.participants
        if order.scorers.shape != (len(names), len(order.manifest)):
            raise Refused("one answer per participant and tree is wanted")
        if not np.array_equal(order.scorers[names.index(self.house.name)], self.scorable(order.manifest)):
            raise Refused("this house has said of other trees that it can score them")
        able_sites = order.scorers & [
            ~abstains(forest, askable(self.house.study, cards[name].present)) for name in names
        ]
        if few := np.count_nonzero(able_sites.sum(axis=0) < fewest):
            raise Refused(f"{few} trees can be scored by fewer than {fewest} sites")


def sum_counts(federation: Federation, study: Study, cluster: Cluster, joined: Mapping[str, Description]) -> Floats:
    """One rounded weight per tree of the cluster's manifest; 0 for trees that could not be summed."""
    mode = study.privacy.secure_sum
    if mode == "masked":
        opened = masked_total(
            federation,
            study.digest,
            (STEP, "sign", "release"),
            MaskedCounts,
            lambda attempt: _order(federation, study, cluster, joined, attempt),
            _subject,
        )
        order = opened.order
        total = order.tally.heard(opened.total, opened.alone, order.bits)
        _check(total, _most(study, order.participants, joined))
        return _spread(
            cluster.manifest, order.manifest, common_weights(total, study.privacy.weight_precision, study.taus)
        )
    order = _order(federation, study, cluster, joined)
    if mode == "ring":
        return _spread(cluster.manifest, order.manifest, _ring(federation, study, order, joined))
    replies = ask(federation, STEP, dict.fromkeys(order.participants, order), PlainCounts)
    counts = well_formed(federation, lambda _: (len(order.manifest), 4), replies)
    still = _order(federation, study, cluster, joined).manifest  # who was lost may be missing for some trees
    total = secure_sum.plain_sum(counts)[_within(order.manifest, still)]
    _check(total, _most(study, counts, joined))
    return _spread(cluster.manifest, still, common_weights(total, study.privacy.weight_precision, study.taus))


def _ring(federation: Federation, study: Study, order: ScoreOrder, joined: Mapping[str, Description]) -> Floats:
    """Every owner's packet goes once round; a lost site voids the round, because asking again would reveal it."""
    members = order.participants
    binding = Binding(study.digest, federation.round, STEP, 1, members, order.about)
    most = _most(study, members, joined)
    packets = ask(federation, STEP, dict.fromkeys(members, order), RingPackets)
    for hop in range(1, len(members)):
        packets = ask(federation, "ring", _passed(binding, packets, most), RingPackets, hop)
    weights, owners = np.zeros(len(order.manifest)), np.asarray(order.manifest.owners)
    last = {site: one for site, one in _passed(binding, packets, most).items() if site in order.manifest.owners}
    weighed = ask(federation, "ring", last, OwnWeights, len(members))
    _require_all(last, weighed)
    for owner, reply in weighed.items():
        if reply.weights.shape != (np.count_nonzero(owners == owner),):
            raise RoundVoid(f"{owner} sent {len(reply.weights)} weights for its trees")
        weights[owners == owner] = reply.weights
    return weights


def _passed(binding: Binding, packets: Mapping[str, RingPackets], most: int) -> dict[str, Message]:
    """Everybody gets what its neighbour has passed on."""
    _require_all(binding.participants, packets)
    names = binding.participants
    return {site: RingOrder(binding, most, packets[names[place - 1]].packets) for place, site in enumerate(names)}


def _require_all(asked: Iterable[str], replies: Mapping[str, object]) -> None:
    if lost := sorted({*asked} - {*replies}):
        raise RoundVoid(f"{', '.join(lost)} was lost while the ring went round")


def _order(
    federation: Federation, study: Study, cluster: Cluster, joined: Mapping[str, Description], attempt: int = 1
) -> ScoreOrder:
    require(federation, study)
    members = tuple(site for site in cluster.members if site in federation.sites)
    fewest = study.privacy.fewest_scorers
    if len(members) < fewest:
        few = f"{len(members)} sites are left to score and {fewest} are needed"
        raise RoundVoid(few + without(federation.left_out))
    manifest = _scorable(cluster, members, fewest)
    if not len(manifest):
        raise RoundVoid(f"there is no tree that {fewest} of the sites that are left can score")
    can = [_answers(cluster.scorers[site], manifest) for site in members]
    order = ScoreOrder(manifest, study.privacy.secure_sum, attempt, members, 0, np.stack(can))
    if order.mode != "masked":
        return order
    return replace(order, bits=secure_sum.bits_for(_most(study, members, joined), 2 * order.tally.together))


def _answers(told: Mapping[str, NDArray[np.bool_]], manifest: Manifest) -> NDArray[np.bool_]:
    """What a site has said about the manifest's trees."""
    pairs = zip(manifest.forests, manifest.taken, strict=True)
    return np.concatenate([answers(told, parcel.sender, len(taken))[taken] for parcel, taken in pairs])


def _subject(order: ScoreOrder) -> Subject:
    tally = order.tally
    return Subject(order.about, tally.together, order.bits, lambda site: int(np.count_nonzero(tally.alone(site))))


def _scorable(cluster: Cluster, members: tuple[str, ...], fewest: int) -> Manifest:
    """The manifest's trees that enough of the remaining sites can score."""
    scorers = [cluster.scorers[site] for site in members]
    parcels = {parcel.sender: parcel for parcel in cluster.manifest.forests}
    taken = {}
    for owner in parcels:
        all_taken = cluster.manifest.of(owner)
        taken[owner] = all_taken & (able(scorers, owner, len(all_taken)) >= fewest)
    return manifest_of(parcels, taken)


def _within(full: Manifest, part: Manifest) -> NDArray[np.bool_]:
    """Which of a manifest's trees are in a part of it."""
    places = []
    for parcel, taken in zip(full.forests, full.taken, strict=True):
        of_part = part.of(parcel.sender)
        places.append(of_part[taken] if len(of_part) else np.zeros(np.count_nonzero(taken), dtype=bool))
    return np.concatenate(places)


def _spread(full: Manifest, scored: Manifest, weights: Floats) -> Floats:
    spread = np.zeros(len(full))
    spread[_within(full, scored)] = weights
    return spread


def _most(study: Study, sites: Iterable[str], joined: Mapping[str, Description]) -> int:
    return sum(most_rows(joined[site].rows, study.privacy) for site in sites)


def _check(total: Counts, most: int) -> None:
    """A summed count that can't be voids the step."""
    secure_sum.check_total(total, most)
    secure_sum.check_total(total.sum(axis=1), most)
