"""Every kind of message of the forest algorithms: what leaves a house, field by field."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused
from spinney.federation.seam import Digest, Message, Parcel
from spinney.federation.secure_sum import Binding
from spinney.federation.tally import Tally
from spinney.linear.terms import LinearTerms
from spinney.rows.plane import SiteMap


@dataclass(frozen=True)
class Invitation(Message):
    """To a site: will you take part? Where the study says federated means, these fill what is missing."""

    round: int
    means: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class EnrolOrder(Message):
    """To a site: will you take part in the means of all sites?"""

    round: int


@dataclass(frozen=True)
class Enrolment(Message):
    """From a site: its rows (rounded), its features, and its key for this round."""

    rows: int
    present: NDArray[np.bool_]
    key: bytes
    signature: bytes


@dataclass(frozen=True)
class FillOrder(Message):
    """To a site: tell your known rows and their sum per column, hidden among these participants."""

    mode: str
    attempt: int
    participants: tuple[str, ...]


@dataclass(frozen=True)
class MaskedMeans(Message):
    """From a site: known rows and sum of every column, that nobody can read alone."""

    counts: NDArray[np.uint64]


@dataclass(frozen=True)
class PlainMeans(Message):
    """From a site to a trusted third party: known rows (rounded) and sum (in thousandths) of every column."""

    counts: NDArray[np.int64]


@dataclass(frozen=True)
class RingMeans(Message):
    """From the first site of a ring, at its end: the mean of every column over all sites, rounded."""

    means: NDArray[np.float64]


@dataclass(frozen=True)
class Description(Message):
    """From a site: its characteristic vector, its rows (rounded), its features, and its key for this round."""

    rows: int
    vector: NDArray[np.float64]
    present: NDArray[np.bool_]
    key: bytes
    signature: bytes


@dataclass(frozen=True)
class ResumeOrder(Message):
    """To a site: nothing about patients is told tonight. Are you there, and do you have what was told?"""

    epoch: int  # the round that opened it
    means: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class Resumed(Message):
    """From a site on a night of an epoch that is open: that it is there, its features, and its key for this round."""

    holds: bool  # what was told when the epoch opened
    present: NDArray[np.bool_]
    key: bytes
    signature: bytes


@dataclass(frozen=True)
class LendOrder(Message):
    """To a site: seal what was lent when the epoch opened for these guests, who were away then."""

    peers: tuple[str, ...]


@dataclass(frozen=True)
class Lent(Message):
    """From a site: where its sealed forest is, the same as when the epoch opened."""

    forest: Parcel


@dataclass(frozen=True)
class GrowOrder(Message):
    """To a site: grow, and seal for these peers."""

    peers: tuple[str, ...]


@dataclass(frozen=True)
class GrownForest(Message):
    """From a site: where its sealed forest is, and what its trees are called together, however they are packed."""

    forest: Parcel
    trees: Digest


@dataclass(frozen=True)
class CheckOrder(Message):
    """To a site: look at everybody's forests."""

    forests: tuple[GrownForest, ...]


@dataclass(frozen=True)
class Verdict(Message):
    """From a site: which trees it can score, and whose break a rule."""

    scorable: Mapping[str, NDArray[np.bool_]]  # owner -> one answer per tree, in the owner's order
    refused: Mapping[str, str]  # owner -> rule, a word of `spinney.federation.refusals`


@dataclass(frozen=True)
class Manifest(Message):
    """The trees of this round in one order, the same for everybody: by owner, then by place in the owner's forest."""

    forests: tuple[Parcel, ...]
    taken: tuple[NDArray[np.bool_], ...]  # of each forest, which of its trees

    def __post_init__(self) -> None:
        senders = [parcel.sender for parcel in self.forests]
        if len(self.taken) != len(senders) or senders != sorted({*senders}) or any(one.ndim != 1 for one in self.taken):
            raise Refused("a manifest says of each forest once, in the order of their owners, which trees it takes")

    def __len__(self) -> int:
        return len(self.owners)

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The owner of every tree."""
        pairs = zip(self.forests, self.taken, strict=True)
        return tuple(parcel.sender for parcel, taken in pairs for _ in range(np.count_nonzero(taken)))

    def of(self, owner: str) -> NDArray[np.bool_]:
        """Which of an owner's trees are in."""
        pairs = zip(self.forests, self.taken, strict=True)
        return next((taken for parcel, taken in pairs if parcel.sender == owner), np.zeros(0, dtype=bool))

    @cached_property
    def digest(self) -> str:
        """Masks are bound to this: a parcel's digest stands for every byte of every tree in it."""
        return self.named([parcel.digest for parcel in self.forests])

    def named(self, forests: Sequence[str]) -> str:
        """A digest of the same choice with the forests called so."""
        hasher = hashlib.sha256()
        for parcel, name, taken in zip(self.forests, forests, self.taken, strict=True):
            hasher.update(f"{parcel.sender} {name} {len(taken)} {np.packbits(taken).tobytes().hex()}\n".encode())
        return hasher.hexdigest()


@dataclass(frozen=True)
class ScoreOrder(Message):
    """To a site: score these trees, and hide the counts among these participants."""

    manifest: Manifest
    mode: str
    attempt: int
    participants: tuple[str, ...]
    bits: int  # of a masked count
    scorers: NDArray[np.bool_]  # participants x trees: who has said that it can score which

    @cached_property
    def about(self) -> str:
        """What the masks are bound to: who is told otherwise can't add up with the others."""
        return hashlib.sha256(self.manifest.digest.encode() + np.packbits(self.scorers).tobytes()).hexdigest()

    @cached_property
    def tally(self) -> Tally:
        """How counts are told in a masked sum."""
        return Tally.of(self.manifest.owners, self.scorers)


@dataclass(frozen=True)
class MaskedCounts(Message):
    """From a site: two numbers per row of its tally, that nobody can read alone."""

    counts: NDArray[np.uint64]


@dataclass(frozen=True)
class PlainCounts(Message):
    """From a site to a trusted third party: counts per tree."""

    counts: NDArray[np.int64]


@dataclass(frozen=True)
class SignOrder(Message):
    """To a site: is this what you sent? The answers of all that were asked, in the order of their names."""

    answers: tuple[Digest, ...]


@dataclass(frozen=True)
class Signature(Message):
    """From a site: yes, signed."""

    signature: bytes


@dataclass(frozen=True)
class ReleaseOrder(Message):
    """To a site: all have signed the list that you have signed; let the sum be opened."""

    signatures: tuple[bytes, ...]


@dataclass(frozen=True)
class ReleasedSeed(Message):
    """From a site: what takes its private mask off this one sum, and its guard off what others have told alone."""

    seed: bytes
    guards: tuple[bytes, ...]  # for each other participant, if there is something to guard


@dataclass(frozen=True)
class RingOrder(Message):
    """To a site: take these packets (owner -> parcel), do your part, and pass them on to the next."""

    binding: Binding
    most: int  # rows of all participants, so that an owner sees sums that can't be
    packets: Mapping[str, Parcel]


@dataclass(frozen=True)
class RingPackets(Message):
    """From a site: packets for its neighbour."""

    packets: Mapping[str, Parcel]


@dataclass(frozen=True)
class OwnWeights(Message):
    """From the owner of some trees at the end of a ring: their weights, rounded."""

    weights: NDArray[np.float64]


@dataclass(frozen=True)
class AddOrder(Message):
    """To a site: tell what your rows add to these real numbers, hidden among these participants.

    Algorithms derive orders with more in them. Whoever is told otherwise must not add up with the others, so what
    decides the numbers belongs into `about`.
    """

    subject: str  # opened once per round
    mode: str
    attempt: int
    participants: tuple[str, ...]
    most: int  # rows of all participants, by which the numbers are written
    packets: tuple[Parcel, ...]  # in a ring: what the neighbour before has passed on

    @property
    def about(self) -> str:
        """What the masks are bound to."""
        return f"{self.subject} over {self.most} rows"


@dataclass(frozen=True)
class MaskedReals(Message):
    """From a site: real numbers in fixed point, that nobody can read alone."""

    counts: NDArray[np.uint64]


@dataclass(frozen=True)
class PlainReals(Message):
    """From a site to a trusted third party: real numbers in fixed point."""

    counts: NDArray[np.int64]


@dataclass(frozen=True)
class RingReals(Message):
    """From the first site of a ring, at its end: real numbers in fixed point, summed over all sites."""

    counts: NDArray[np.int64]


@dataclass(frozen=True)
class OpenedSum:
    """How a sum was opened. Each participant of a masked one can open it again, and knows by its roll that it is it."""

    subject: str
    hidden: NDArray[np.uint64]  # participants x numbers: everybody's answer; of no size where nothing was masked
    seeds: tuple[bytes, ...]
    total: NDArray[np.int64]  # where nothing was masked


@dataclass(frozen=True)
class FitOrder(AddOrder):
    """To a site: a step of the common logistic regression. Where it starts follows from how the last sum was opened."""

    last: OpenedSum


@dataclass(frozen=True)
class FitResult(Message):
    """To a site: what the common logistic regression came to. The end of the round."""

    terms: LinearTerms

    @property
    def digest(self) -> str:
        """A site finishes a round with one of these only."""
        return self.terms.digest


@dataclass(frozen=True)
class Weights(Message):
    """To a site: the round's trees and their common weights, rounded; who is like whom. The end of the round."""

    manifest: Manifest
    weights: NDArray[np.float64]
    map: SiteMap = field(default_factory=SiteMap)  # empty where the study keeps it from the sites
    linear: LinearTerms = field(default_factory=LinearTerms)  # the common regression beside the trees; empty: none

    @cached_property
    def digest(self) -> str:
        """A site finishes a round with one of these only."""
        beside = self.linear.digest.encode() if self.linear else b""
        told = self.manifest.digest.encode() + self.weights.astype("<f8").tobytes() + beside
        return hashlib.sha256(told).hexdigest()


@dataclass(frozen=True)
class Done(Message):
    """From a site: it has its model. Its own test figures only if the study says that sites share them."""

    figures: Mapping[str, float]


INTRODUCTIONS = (Description, Enrolment, Resumed)
"""They bring a site's key for the round."""
