"""The coordinator's half of every algorithm that exchanges forests: who takes part, with whom, with which trees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.errors import RoundVoid
from spinney.federation.messages import (
    CheckOrder,
    Description,
    GrownForest,
    GrowOrder,
    Manifest,
    Verdict,
    Weights,
)
from spinney.federation.refusals import broken, false_refusals
from spinney.federation.seam import Decline, Federation, Message, Parcel
from spinney.linear.terms import LinearTerms
from spinney.rows.plane import SiteMap, site_map
from spinney.study.settings import fewest_to_lend

if TYPE_CHECKING:
    from spinney.study.study import Study

Kind = TypeVar("Kind", bound=Message)


@dataclass(frozen=True)
class Cluster:
    """Sites that help each other in this round, and the trees that enough of them can score."""

    members: tuple[str, ...]
    manifest: Manifest
    scorers: Mapping[str, Mapping[str, NDArray[np.bool_]]]  # site -> owner -> trees that it can score
    trees: Mapping[str, str]  # owner -> what its trees are called together


def require(federation: Federation, study: Study) -> None:
    """The round is void when too few sites are left."""
    needed = max(study.quorum, study.privacy.fewest_scorers)
    if len(federation.sites) < needed:
        advice = ""
        if len(federation.sites) == 2 and study.privacy.secure_sum != "trusted-third-party":
            advice = "; two sites can only use secure_sum: trusted-third-party"
        left = f"{len(federation.sites)} sites are left and {needed} are needed"
        raise RoundVoid(f"{left}{advice}{without(federation.left_out)}")


def without(left_out: Mapping[str, str]) -> str:
    """Who was left out and why, as the end of a sentence; empty where nobody was."""
    names = "; ".join(f"{site}: {reason}" for site, reason in sorted(left_out.items()))
    return f"; left out: {names}" if names else ""


def gather(federation: Federation, study: Study, groups: Sequence[Sequence[str]]) -> list[Cluster]:
    """Let every group grow, check each other's forests, and agree on one manifest."""
    group_of = {site: tuple(sorted(group)) for group in groups for site in group}
    grown = ask(federation, "grow", {site: GrowOrder(group_of[site]) for site in federation.sites}, GrownForest)
    for site, reply in grown.items():
        if reply.forest.sender != site:
            federation.leave_out(site, f"sent a forest in the name of {reply.forest.sender}")
    require(federation, study)
    orders = {}
    for site in federation.sites:
        orders[site] = CheckOrder(tuple(grown[peer] for peer in group_of[site] if peer in federation.sites))
    verdicts = ask(federation, "check", orders, Verdict)
    for group in sorted({*group_of.values()}):
        for site, reason in false_refusals({site: verdicts[site] for site in group if site in verdicts}).items():
            federation.leave_out(site, reason)
    require(federation, study)
    return [_cluster(federation, study, group, grown, verdicts) for group in sorted({*group_of.values()})]


def _cluster(
    federation: Federation,
    study: Study,
    group: Sequence[str],
    grown: Mapping[str, GrownForest],
    verdicts: Mapping[str, Verdict],
) -> Cluster:
    members = tuple(site for site in group if site in federation.sites and site in verdicts)
    if len(members) < study.privacy.fewest_scorers:
        few = f"a cluster has {len(members)} sites left and needs {study.privacy.fewest_scorers}"
        raise RoundVoid(few + without(federation.left_out))
    scorers = {site: verdicts[site].scorable for site in members}
    said = {site: verdicts[site] for site in group if site in verdicts}
    agreed = {}
    for owner in members:
        own = verdicts[owner].scorable.get(owner, np.zeros(0, dtype=bool))
        enough = able(scorers.values(), owner, len(own)) >= study.privacy.fewest_scorers
        agreed[owner] = enough & (not broken(said, owner))
    manifest = manifest_of({owner: grown[owner].forest for owner in members}, agreed)
    if not len(manifest):
        few = f"there is no tree that {study.privacy.fewest_scorers} sites can score"
        if not any(len(told) for one in scorers.values() for told in one.values()):
            few += (
                f"; nobody has lent one, which takes {fewest_to_lend(study.lent_leaf)} training patients where leaves "
                f"that are lent have {study.lent_leaf} (privacy.lent_leaf)"
            )
        raise RoundVoid(few)
    return Cluster(members, manifest, scorers, {owner: grown[owner].trees for owner in members})


def manifest_of(parcels: Mapping[str, Parcel], taken: Mapping[str, NDArray[np.bool_]]) -> Manifest:
    """The forests of which something is taken."""
    owners = [owner for owner in sorted(taken) if taken[owner].any()]
    return Manifest(tuple(parcels[owner] for owner in owners), tuple(taken[owner] for owner in owners))


def able(scorers: Iterable[Mapping[str, NDArray[np.bool_]]], owner: str, trees: int) -> NDArray[np.int64]:
    """How many sites can score each of an owner's trees."""
    return np.asarray(np.sum([answers(one, owner, trees) for one in scorers], axis=0, dtype=np.int64))


def answers(given: Mapping[str, NDArray[np.bool_]], owner: str, trees: int) -> NDArray[np.bool_]:
    """A site's answers about an owner's trees; about another number of trees, they are no answers."""
    told = given.get(owner, np.zeros(0, dtype=bool))
    return told if told.shape == (trees,) else np.zeros(trees, dtype=bool)


def publish(
    federation: Federation,
    study: Study,
    joined: Mapping[str, Description],
    clusters: Sequence[tuple[Cluster, NDArray[np.float64]]],
    linear: LinearTerms | None = None,
) -> str:
    """Send every site its cluster's weights, the map of all and the common regression; the common models' digest."""
    linear = LinearTerms() if linear is None else linear
    orders: dict[str, Message] = {}
    hasher = hashlib.sha256()
    left = [[site for site in cluster.members if site in federation.sites] for cluster, _ in clusters]
    vectors = {site: description.vector for site, description in joined.items()}
    drawn = site_map(vectors, left, study.algorithm) if study.privacy.share_map else SiteMap()
    for (cluster, weights), members in zip(clusters, left, strict=True):
        orders |= dict.fromkeys(members, Weights(cluster.manifest, weights, drawn, linear))
        names = [cluster.trees[parcel.sender] for parcel in cluster.manifest.forests]
        hasher.update(cluster.manifest.named(names).encode() + weights.astype("<f8").tobytes())
    if linear:
        hasher.update(linear.digest.encode())
    federation.ask("finish", orders)
    return hasher.hexdigest()


def ask(
    federation: Federation, step: str, orders: Mapping[str, Message], kind: type[Kind], attempt: int = 1
) -> dict[str, Kind]:
    """The replies of the right kind, by name; who answers something else is out of the round."""
    replies = sorted(federation.ask(step, orders, attempt).items())
    for site, reply in replies:
        if not isinstance(reply, kind):
            reason = f"answered {step} with something else"
            federation.leave_out(site, reply.reason if isinstance(reply, Decline) else reason)
    return {site: reply for site, reply in replies if isinstance(reply, kind)}
