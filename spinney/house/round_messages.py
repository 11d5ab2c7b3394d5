"""What a coordinator writes in a round, besides its algorithm's orders; checked when it is made and when it arrives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spinney.connectors.exchange import BadAddress
from spinney.errors import Refused, in_short
from spinney.federation.seam import Card, Digest, Message
from spinney.house import encoding as wire
from spinney.house.addresses import addresses

DIGEST_LETTERS = 64


@dataclass(frozen=True)
class Opening:
    """A round begins. Signed by the coordinator and readable by all."""

    round: int
    study: Digest
    roster: Digest  # that this round runs with
    key: bytes
    epoch: int  # the round that opened it; this one, if it opens one

    def __post_init__(self) -> None:
        if not 1 <= self.epoch <= self.round:
            raise Refused("an opening names the round that its epoch began with")


@dataclass(frozen=True)
class Order:
    """What some sites are asked: sent once, however many they are."""

    sites: tuple[str, ...]
    content: bytes


@dataclass(frozen=True)
class Ask:
    """One step, asked of some sites; and the cards of those that have joined since the ask before."""

    step: str
    attempt: int
    orders: tuple[Order, ...]
    cards: Mapping[str, Card]

    def __post_init__(self) -> None:
        try:
            _ = [*addresses("study", "site", 1, self.step, self.attempt)]
        except BadAddress:  # a site keeps its answer in a file of this name, too
            raise Refused("an ask has a step and an attempt that no answer can be addressed with") from None


@dataclass(frozen=True)
class KeptRelease:
    """What a coordinator keeps of an epoch's opening, so that it can be told again: the last orders."""

    model: Digest
    orders: tuple[Order, ...]


@dataclass(frozen=True)
class Over:
    """The round has ended: the common model's digest, or why it is void."""

    model: Digest
    void: str

    def __post_init__(self) -> None:
        digest = len(self.model) == DIGEST_LETTERS and wire.HEX.issuperset(self.model)
        if not (digest or not self.model) or self.void != in_short(self.void):
            raise Refused("the end of a round has the digest of a model, or a sentence that says why it is void")


def ask_name(number: int) -> str:
    """Where the coordinator's asks are found, without a look at what else is there."""
    return f"ask{number:03d}"


def orders_of(orders: Mapping[str, Message]) -> tuple[Order, ...]:
    """Who is asked the same."""
    groups: dict[bytes, list[str]] = {}
    packed: dict[int, bytes] = {}  # the same order for many is packed once
    for site, order in sorted(orders.items()):
        if id(order) not in packed:
            packed[id(order)] = wire.encode_message(order)
        groups.setdefault(packed[id(order)], []).append(site)
    return tuple(Order(tuple(sites), content) for content, sites in groups.items())
