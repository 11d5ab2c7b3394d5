"""Both halves of a secure sum, whatever is added up: a site's masks and signatures, the coordinator's way to the total.

A house keeps what belongs to one sum under a prefix in its memory, so that one round may have several sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from spinney.errors import Refused, RoundVoid
from spinney.federation import secure_sum
from spinney.federation.gathering import ask
from spinney.federation.messages import (
    AddOrder,
    FillOrder,
    MaskedCounts,
    MaskedMeans,
    MaskedReals,
    PlainCounts,
    PlainMeans,
    PlainReals,
    ReleasedSeed,
    ReleaseOrder,
    ScoreOrder,
    Signature,
    SignOrder,
)
from spinney.federation.seam import Card, Federation, SiteContext
from spinney.federation.secure_sum import Binding, Counts, Noisy, Roll

Order = TypeVar("Order", ScoreOrder, FillOrder, AddOrder)
Masked = MaskedCounts | MaskedMeans | MaskedReals
Summand = Masked | PlainCounts | PlainMeans | PlainReals
ANSWERED_BEFORE = "this was asked before, and the answer was another: the two would tell what is hidden"


# ---------------------------------------------------------------------------------------------------------------
# A site's half


def check_order(house: SiteContext, order: ScoreOrder | FillOrder | AddOrder) -> dict[str, Card]:
    """The participants' keys and features. Refuses a sum that is not the study's, or of too few or unknown sites."""
    wanted = house.study.privacy.secure_sum
    if order.mode != wanted:
        raise Refused(f"the study says {wanted}, the coordinator asks for {order.mode}")
    check_participants(house, order.participants)
    unknown = [site for site in order.participants if site not in house.cards]
    if unknown:
        raise Refused(f"no round key of {', '.join(unknown)} has come, signed by its owner")
    return {site: house.cards[site] for site in order.participants}


def check_participants(house: SiteContext, participants: tuple[str, ...]) -> None:
    """A sum over a few sites is hardly a sum."""
    if len(participants) < house.study.privacy.fewest_scorers or house.name not in participants:
        raise Refused(f"{len(participants)} participants are too few, or this house is not among them")


def hide(
    house: SiteContext,
    cells: Counts,
    cards: Mapping[str, Card],
    binding: Binding,
    prefix: str = "",
    bits: int = secure_sum.ALL_BITS,
    together: int | None = None,
) -> Noisy:
    """This house's numbers under masks; what this answer is called is remembered."""
    masked = secure_sum.mask(
        cells,
        name=house.name,
        private_key=house.memory["key"],
        public_keys={site: card.key for site, card in cards.items()},
        private_seed=house.memory.setdefault(f"{prefix}private-seed", secure_sum.new_seed()),
        binding=binding,
        bits=bits,
        together=together,
    )
    reply = secure_sum.reply_digest(masked, binding)
    if house.memory.setdefault(f"{prefix}reply-{binding.digest[:32]}", reply) != reply:
        raise Refused(ANSWERED_BEFORE)
    house.memory[f"{prefix}asking"], house.memory[f"{prefix}reply"] = binding.words(), reply
    return masked


def sign_roll(house: SiteContext, order: SignOrder, prefix: str = "") -> Signature:
    """Sign a list only if it has what this house sent."""
    own = house.recall(f"{prefix}reply")
    roll = Roll.of(Binding.read(house.recall(f"{prefix}asking")), order.answers)
    secure_sum.check_roll(roll, name=house.name, own_digest=own)
    house.memory[f"{prefix}signed"] = "\n".join(roll.answers)
    return Signature(house.sign(roll.words()))


def release_sum(house: SiteContext, order: ReleaseOrder, prefix: str = "", *, guarded: bool = False) -> ReleasedSeed:
    """Let one sum be opened, once, if everybody on the list that this house has signed has signed it, too."""
    answers = house.recall(f"{prefix}signed").split("\n")
    roll = Roll.of(Binding.read(house.recall(f"{prefix}asking")), answers)
    seed = secure_sum.release(
        house.recall(f"{prefix}private-seed"),
        name=house.name,
        roll=roll,
        own_digest=house.recall(f"{prefix}reply"),
        signatures=dict(zip(roll.binding.participants, order.signatures, strict=False)),
        verify=house.verify,
        already=house.memory.get(f"{prefix}released"),
    )
    house.memory[f"{prefix}released"] = roll.digest
    if not guarded:
        return ReleasedSeed(seed, ())
    keys = {site: house.cards[site].key for site in roll.binding.participants}
    key = house.memory["key"]
    return ReleasedSeed(seed, secure_sum.guards(key, name=house.name, public_keys=keys, binding=roll.binding))


# ---------------------------------------------------------------------------------------------------------------
# The coordinator's half


@dataclass(frozen=True)
class Subject:
    """What an order's masks are bound to, and the rows of what is sent."""

    about: str
    together: int  # rows that are added up
    bits: int = secure_sum.ALL_BITS
    alone: Callable[[str], int] | None = None  # rows behind them that only this site has
    across: int = 2  # numbers per row

    def shape(self, site: str) -> tuple[int, int]:
        """Of a site's answer."""
        return self.together + (self.alone(site) if self.alone else 0), self.across


@dataclass(frozen=True)
class Opened(Generic[Order]):
    """A masked sum, and the order that was answered."""

    order: Order
    total: Counts
    alone: Mapping[str, Counts]  # of each site what was not added up
    answers: Mapping[str, Noisy]
    seeds: Mapping[str, bytes]


def masked_total(
    federation: Federation,
    study_digest: str,
    steps: tuple[str, str, str],
    kind: type[MaskedCounts] | type[MaskedMeans] | type[MaskedReals],
    next_order: Callable[[int], Order],
    subject: Callable[[Order], Subject],
    attempts: Iterator[int] | None = None,
) -> Opened[Order]:
    """Ask until everybody who was asked has answered and signed; only then may the sum be opened.

    `steps` are those to ask, to sign and to release. Every turn loses a site or ends, because who doesn't answer as
    asked is out of the round. Where the same steps serve several sums, all of them count on with their `attempts`.
    """
    attempts, (asking, signing, releasing) = attempts or count(1), steps
    while True:
        attempt = next(attempts)
        order = next_order(attempt)
        members: tuple[str, ...] = order.participants
        what = subject(order)
        binding = Binding(study_digest, federation.round, asking, attempt, members, what.about)
        replies = ask(federation, asking, dict.fromkeys(members, order), kind, attempt)
        cells = well_formed(federation, what.shape, replies)
        digests = {site: secure_sum.reply_digest(masked, binding) for site, masked in cells.items()}
        if not {*members} <= {*federation.sites}:
            continue
        roll = Roll(binding, tuple(sorted(digests.items())))
        signatures = _signatures(federation, roll, signing, attempt)
        if not {*members} <= {*federation.sites}:
            continue
        released = _released(federation, binding, signatures, what, (releasing, attempt))
        seeds = {site: reply.seed for site, reply in released.items()}
        return Opened(order, *_opened(cells, released, binding, what), cells, seeds)


def well_formed(
    federation: Federation, shape: Callable[[str], tuple[int, int]], replies: Mapping[str, Summand]
) -> dict[str, NDArray[Any]]:
    """What is to be added up; who sends another shape is out of the round."""
    for site, reply in replies.items():
        if reply.counts.shape != shape(site):
            federation.leave_out(site, f"sent {len(reply.counts)} rows of counts where {shape(site)[0]} were asked")
    return {site: reply.counts for site, reply in replies.items() if site in federation.sites}


def _signatures(federation: Federation, roll: Roll, step: str, attempt: int) -> dict[str, bytes]:
    order = SignOrder(roll.answers)
    signed = ask(federation, step, dict.fromkeys(roll.binding.participants, order), Signature, attempt)
    for site, reply in signed.items():
        if not federation.verify(site, roll.words(), reply.signature):
            federation.leave_out(site, "signed another list than the one it was shown")
    return {site: reply.signature for site, reply in signed.items()}


def _released(
    federation: Federation, binding: Binding, signatures: Mapping[str, bytes], what: Subject, step: tuple[str, int]
) -> dict[str, ReleasedSeed]:
    members, (name, attempt) = binding.participants, step
    order = ReleaseOrder(tuple(signatures[site] for site in members))
    replies = ask(federation, name, dict.fromkeys(members, order), ReleasedSeed, attempt)
    guards = len(members) - 1 if what.alone else 0
    released = {site: reply for site, reply in replies.items() if len(reply.guards) == guards}
    if lost := sorted({*members} - {*released}):
        raise RoundVoid(f"{', '.join(lost)} did not release: the sum can't be opened")
    return released


def _opened(
    cells: Mapping[str, Noisy], released: Mapping[str, ReleasedSeed], binding: Binding, what: Subject
) -> tuple[Counts, dict[str, Counts]]:
    """What is added up, and what each site has told alone."""
    seeds = {site: reply.seed for site, reply in released.items()}
    total = secure_sum.unmask(
        {site: masked[: what.together] for site, masked in cells.items()}, seeds, binding, what.bits
    )
    if what.alone is None:
        return total, {}
    guarded: dict[str, list[bytes]] = {site: [] for site in cells}
    for site, reply in released.items():
        for other, guard in zip(binding.others(site), reply.guards, strict=True):
            guarded[other].append(guard)
    alone = {
        site: secure_sum.unmask_alone(masked, seeds[site], guarded[site], what.together, what.bits)
        for site, masked in cells.items()
    }
    return total, alone
