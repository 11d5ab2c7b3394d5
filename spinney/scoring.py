"""Scoring under a secure sum: the site's steps, and the coordinator's way to one weight per tree.

`masked` (default): the coordinator learns the sum of all sites' counts and nobody's own. `ring`: the owner of a tree
learns its total. `trusted-third-party`: the coordinator sees counts. Same counts, same weights, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney import secure_sum
from spinney.errors import Refused, RoundVoid
from spinney.federation import Federation, Message
from spinney.forest_site import ForestSite
from spinney.gathering import Cluster, expect, require
from spinney.messages import (
    Description,
    Manifest,
    MaskedCounts,
    OwnWeights,
    PlainCounts,
    ReleasedSeed,
    ReleaseOrder,
    RingOrder,
    RingPackets,
    ScoreOrder,
    Signature,
    SignOrder,
)
from spinney.score import Counts
from spinney.secure_sum import Binding, Roll
from spinney.weigh import common_weights

if TYPE_CHECKING:
    from spinney.study import Study

Floats = NDArray[np.float64]
STEP = "score"


class ScoringSite(ForestSite):
    """The steps of the three secure sums."""

    steps = frozenset({"join", "grow", "check", "score", "sign", "release", "ring", "finish"})

    def score(self, order: ScoreOrder) -> Message:
        """Count at home, hide the counts, send."""
        house = self.house
        if order.mode != house.study.privacy.secure_sum:
            raise Refused(f"the study says {house.study.privacy.secure_sum}, the coordinator asks for {order.mode}")
        if len(order.participants) < house.study.privacy.fewest_scorers or house.name not in order.participants:
            raise Refused(f"{len(order.participants)} participants are too few, or this house is not among them")
        counts = self._counts(order)
        if order.mode == "trusted-third-party":
            return PlainCounts(counts)
        binding = self._binding(order)
        if order.mode == "ring":
            return self._start_ring(order, binding, counts)
        self._check_keys(order)
        # one seed per attempt: what is released for one must not open another
        seed = house.memory.setdefault(f"private-seed-{order.attempt}", secure_sum.new_seed())
        masked = secure_sum.mask(
            counts,
            name=house.name,
            private_key=house.memory["key"],
            public_keys=order.keys,
            private_seed=seed,
            binding=binding,
        )
        house.memory["reply"] = digest = secure_sum.reply_digest(masked, binding)
        return MaskedCounts(masked, digest)

    def sign(self, order: SignOrder) -> Message:
        """Sign a list only if it has what this house sent."""
        secure_sum.check_roll(order.roll, name=self.house.name, own_digest=self.house.memory["reply"])
        return Signature(self.house.sign(order.roll.words()))

    def release(self, order: ReleaseOrder) -> Message:
        """Let one sum be opened, once, if everybody on the list has signed it."""
        house = self.house
        seed = secure_sum.release(
            house.memory[f"private-seed-{order.roll.binding.attempt}"],
            name=house.name,
            roll=order.roll,
            own_digest=house.memory["reply"],
            signatures=order.signatures,
            verify=house.verify,
            already=house.memory.get("released"),
        )
        house.memory["released"] = order.roll.digest
        return ReleasedSeed(seed)

    def ring(self, order: RingOrder) -> Message:
        """Add this house's counts to every packet that comes by; at the end take the own noise off the own packet."""
        house, names = self.house, order.binding.participants
        if order.hop == len(names):
            return self._finish_ring(order)
        following = names[(names.index(house.name) + 1) % len(names)]
        packets = {}
        for owner, parcel in sorted(order.packets.items()):
            once = f"ring-{owner}"
            if owner == house.name or house.memory.setdefault(once, parcel.digest) != parcel.digest:
                raise Refused(f"the packet of {owner} came twice")
            passed = np.frombuffer(house.open(parcel), dtype="<u8").reshape(-1, 4)
            added = secure_sum.ring_add(passed, self._counts_of(owner))
            packets[owner] = house.mail.post(added.astype("<u8").tobytes(), [following])
        return RingPackets(packets)

    def _start_ring(self, order: ScoreOrder, binding: Binding, counts: Counts) -> Message:
        house, names = self.house, binding.participants
        house.memory["owners"] = np.array(order.manifest.owners)
        house.memory["counts"] = counts
        seed = house.memory.setdefault("ring-seed", secure_sum.new_seed())
        packet = secure_sum.ring_start(self._counts_of(house.name), seed, binding, house.name)
        following = names[(names.index(house.name) + 1) % len(names)]
        return RingPackets({house.name: house.mail.post(packet.astype("<u8").tobytes(), [following])})

    def _finish_ring(self, order: RingOrder) -> Message:
        house = self.house
        passed = np.frombuffer(house.open(order.packets[house.name]), dtype="<u8").reshape(-1, 4)
        total = secure_sum.ring_finish(passed, house.memory["ring-seed"], order.binding, house.name)
        return OwnWeights(common_weights(total, house.study.privacy.weight_precision))

    def _counts_of(self, owner: str) -> Counts:
        return np.asarray(self.house.memory["counts"][self.house.memory["owners"] == owner])

    def _counts(self, order: ScoreOrder) -> Counts:
        """This house's counts of the manifest's trees; no tree on two nights, and none after the sum was opened."""
        house = self.house
        if "released" in house.memory:
            raise Refused("this round's sum was opened already; its trees are not scored again")
        again = sum(not self._unscored(digest) for digest in order.manifest.trees)
        if again:
            raise Refused(f"{again} trees were scored on an earlier night")
        forest = self.manifest_forest(order.manifest, order.forests)
        place_of = {digest: place for place, digest in enumerate(self.own_forest().digests)}
        mine = [
            place_of[digest]
            for digest, owner in zip(order.manifest.trees, order.manifest.owners, strict=True)
            if owner == house.name
        ]
        counts = self.own_counts(forest, order.manifest.owners, house.memory["unseen"][:, mine])
        house.memory["scored"], house.memory["fold-counts"] = order.manifest.digest, counts
        house.history.update(dict.fromkeys(order.manifest.trees, house.round))
        return np.asarray(counts.sum(axis=0))

    def _binding(self, order: ScoreOrder) -> Binding:
        study, manifest = self.house.study.digest, order.manifest.digest
        return Binding(study, self.house.round, STEP, order.attempt, order.participants, manifest)

    def _check_keys(self, order: ScoreOrder) -> None:
        """A coordinator that hands out keys of its own could read everybody."""
        for site in order.participants:
            words = self.key_words(site, order.keys.get(site, b""))
            if not self.house.verify(site, words, order.signatures.get(site, b"")):
                raise Refused(f"the round key of {site} is not signed by {site}")


def sum_counts(federation: Federation, study: Study, cluster: Cluster, joined: Mapping[str, Description]) -> Floats:
    """One rounded weight per tree of the cluster's manifest; 0 for trees that could not be summed."""
    mode = study.privacy.secure_sum
    if mode == "masked":
        return _masked(federation, study, cluster, joined)
    members = tuple(site for site in cluster.members if site in federation.sites)
    order = _order(study, cluster, members, joined, 1)
    replies = federation.ask(STEP, dict.fromkeys(members, order))
    if mode == "ring":
        return _spread(cluster.manifest, order.manifest, _ring(federation, study, order, expect(replies, RingPackets)))
    plain = expect(replies, PlainCounts)
    _leave_out_misshapen(federation, plain, len(order.manifest.trees))
    require(federation, study)
    counts = {site: reply.counts for site, reply in plain.items() if site in federation.sites}
    total = secure_sum.plain_sum(counts)
    _check(total, study, counts, joined)
    return _spread(cluster.manifest, order.manifest, common_weights(total, study.privacy.weight_precision))


def _masked(federation: Federation, study: Study, cluster: Cluster, joined: Mapping[str, Description]) -> Floats:
    """Ask until everybody who was asked has answered and signed; only then may the sum be opened."""
    attempt = 0
    while True:
        attempt += 1
        members = tuple(site for site in cluster.members if site in federation.sites)
        if len(members) < study.privacy.fewest_scorers:
            raise RoundVoid(f"{len(members)} sites are left to score and {study.privacy.fewest_scorers} are needed")
        order = _order(study, cluster, members, joined, attempt)
        replies = expect(federation.ask(STEP, dict.fromkeys(members, order), attempt), MaskedCounts)
        _leave_out_misshapen(federation, replies, len(order.manifest.trees))
        if len(replies) < len(members) or not {*members} <= {*federation.sites}:
            continue
        binding = Binding(study.digest, federation.round, STEP, attempt, members, order.manifest.digest)
        roll = Roll(binding, tuple(sorted((site, reply.digest) for site, reply in replies.items())))
        signed = expect(federation.ask("sign", dict.fromkeys(members, SignOrder(roll)), attempt), Signature)
        if len(signed) < len(members):
            continue
        signatures = {site: reply.signature for site, reply in signed.items()}
        forged = [site for site in members if not federation.verify(site, roll.words(), signatures[site])]
        for site in forged:
            federation.leave_out(site, "signed another list than the one it was shown")
        if forged:
            continue
        seeds = expect(
            federation.ask("release", dict.fromkeys(members, ReleaseOrder(roll, signatures)), attempt), ReleasedSeed
        )
        if len(seeds) < len(members):
            lost = sorted({*members} - {*seeds})
            raise RoundVoid(f"{', '.join(lost)} did not release: the sum can't be opened")
        counts = {site: reply.counts for site, reply in replies.items()}
        total = secure_sum.unmask(counts, {site: reply.seed for site, reply in seeds.items()}, binding)
        _check(total, study, counts, joined)
        return _spread(cluster.manifest, order.manifest, common_weights(total, study.privacy.weight_precision))


def _leave_out_misshapen(federation: Federation, replies: Mapping[str, MaskedCounts | PlainCounts], trees: int) -> None:
    for site, reply in replies.items():
        if reply.counts.shape != (trees, 4):
            federation.leave_out(site, f"sent counts of {len(reply.counts)} trees for {trees}")


def _ring(federation: Federation, study: Study, order: ScoreOrder, packets: Mapping[str, RingPackets]) -> Floats:
    """Every owner's packet goes once round; a lost site voids the round, because asking again would reveal it."""
    members = order.participants
    binding = Binding(study.digest, federation.round, STEP, 1, members, order.manifest.digest)
    for hop in range(1, len(members) + 1):
        if len(packets) < len(members):
            raise RoundVoid("a site was lost while the ring went round")
        orders = {}
        for place, site in enumerate(members):
            orders[site] = RingOrder(hop, binding, packets[members[place - 1]].packets)
        replies = federation.ask("ring", orders, hop)
        if hop == len(members):
            return _owners_weights(order.manifest, expect(replies, OwnWeights))
        packets = expect(replies, RingPackets)
    raise AssertionError("a ring has at least one hop")


def _owners_weights(manifest: Manifest, replies: Mapping[str, OwnWeights]) -> Floats:
    weights, owners = np.zeros(len(manifest.trees)), np.asarray(manifest.owners)
    for owner, reply in replies.items():
        if np.count_nonzero(owners == owner) != len(reply.weights) or not np.all(np.abs(reply.weights) <= 1):
            raise RoundVoid(f"{owner} sent weights that can't be")
        weights[owners == owner] = reply.weights
    return weights


def _order(
    study: Study, cluster: Cluster, members: tuple[str, ...], joined: Mapping[str, Description], attempt: int
) -> ScoreOrder:
    return ScoreOrder(
        _scorable(cluster, members, study.privacy.fewest_scorers),
        cluster.forests,
        study.privacy.secure_sum,
        attempt,
        members,
        {site: joined[site].key for site in members},
        {site: joined[site].signature for site in members},
    )


def _scorable(cluster: Cluster, members: tuple[str, ...], fewest: int) -> Manifest:
    """The manifest's trees that enough of the remaining sites can score."""
    pairs = [
        (tree, owner)
        for tree, owner in zip(cluster.manifest.trees, cluster.manifest.owners, strict=True)
        if sum(tree in cluster.scorers[site] for site in members) >= fewest
    ]
    return Manifest(tuple(tree for tree, _ in pairs), tuple(owner for _, owner in pairs))


def _spread(full: Manifest, scored: Manifest, weights: Floats) -> Floats:
    by_tree = dict(zip(scored.trees, weights.tolist(), strict=True))
    return np.array([by_tree.get(tree, 0.0) for tree in full.trees])


def _check(total: Counts, study: Study, replies: Mapping[str, object], joined: Mapping[str, Description]) -> None:
    """A summed count that can't be voids the step."""
    most = sum(joined[site].rows + study.privacy.rows_precision for site in replies)
    secure_sum.check_total(total, most)
    secure_sum.check_total(total.sum(axis=1), most)
