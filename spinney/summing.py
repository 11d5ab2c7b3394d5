"""Both halves of a secure sum, whatever is added up: a site's masks and signatures, the coordinator's way to the total.

A house keeps what belongs to one sum under a prefix in its memory, so that one round may have several sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from numpy.typing import NDArray

from spinney import secure_sum
from spinney.errors import Refused, RoundVoid
from spinney.federation import Card, Federation, House
from spinney.gathering import ask
from spinney.messages import (
    FillOrder,
    MaskedCounts,
    MaskedMeans,
    PlainCounts,
    PlainMeans,
    ReleasedSeed,
    ReleaseOrder,
    ScoreOrder,
    Signature,
    SignOrder,
)
from spinney.secure_sum import Binding, Counts, Noisy, Roll

Order = TypeVar("Order", ScoreOrder, FillOrder)
Summand = MaskedCounts | PlainCounts | MaskedMeans | PlainMeans


# ---------------------------------------------------------------------------------------------------------------
# A site's half


def check_order(house: House, order: ScoreOrder | FillOrder) -> dict[str, Card]:
    """The participants' keys and features. Refuses a sum that is not the study's, or of too few or unknown sites."""
    wanted = house.study.privacy.secure_sum
    if order.mode != wanted:
        raise Refused(f"the study says {wanted}, the coordinator asks for {order.mode}")
    check_participants(house, order.participants)
    unknown = [site for site in order.participants if site not in house.cards]
    if unknown:
        raise Refused(f"no round key of {', '.join(unknown)} has come, signed by its owner")
    return {site: house.cards[site] for site in order.participants}


def check_participants(house: House, participants: tuple[str, ...]) -> None:
    """A sum over a few sites is hardly a sum."""
    if len(participants) < house.study.privacy.fewest_scorers or house.name not in participants:
        raise Refused(f"{len(participants)} participants are too few, or this house is not among them")


def hide(
    house: House,
    cells: Counts,
    cards: Mapping[str, Card],
    binding: Binding,
    prefix: str = "",
    bits: int = secure_sum.ALL_BITS,
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
    )
    house.memory[f"{prefix}reply"] = secure_sum.reply_digest(masked, binding)
    return masked


def sign(house: House, order: SignOrder, prefix: str = "") -> Signature:
    """Sign a list only if it has what this house sent."""
    secure_sum.check_roll(order.roll, name=house.name, own_digest=house.recall(f"{prefix}reply"))
    return Signature(house.sign(order.roll.words()))


def release(house: House, order: ReleaseOrder, prefix: str = "") -> ReleasedSeed:
    """Let one sum be opened, once, if everybody on the list has signed it."""
    seed = secure_sum.release(
        house.recall(f"{prefix}private-seed"),
        name=house.name,
        roll=order.roll,
        own_digest=house.recall(f"{prefix}reply"),
        signatures=order.signatures,
        verify=house.verify,
        already=house.memory.get(f"{prefix}released"),
    )
    house.memory[f"{prefix}released"] = order.roll.digest
    return ReleasedSeed(seed)


# ---------------------------------------------------------------------------------------------------------------
# The coordinator's half


def masked_total(
    federation: Federation,
    study_digest: str,
    steps: tuple[str, str, str],
    kind: type[MaskedCounts] | type[MaskedMeans],
    next_order: Callable[[int], Order],
    subject: Callable[[Order], tuple[str, tuple[int, int], int]],
) -> tuple[Order, Counts]:
    """Ask until everybody who was asked has answered and signed; only then may the sum be opened.

    `steps` are those to ask, to sign and to release; `subject` says what an order's masks are bound to, and the shape
    and bits of what is added up. Every turn loses a site or ends, because who doesn't answer as asked is out of the
    round.
    """
    attempt, (asking, signing, releasing) = 0, steps
    while True:
        attempt += 1
        order = next_order(attempt)
        members: tuple[str, ...] = order.participants
        about, shape, bits = subject(order)
        binding = Binding(study_digest, federation.round, asking, attempt, members, about)
        replies = ask(federation, asking, dict.fromkeys(members, order), kind, attempt)
        cells = well_formed(federation, shape, replies, "trees" if kind is MaskedCounts else "columns")
        digests = {site: secure_sum.reply_digest(masked, binding) for site, masked in cells.items()}
        if not {*members} <= {*federation.sites}:
            continue
        roll = Roll(binding, tuple(sorted(digests.items())))
        signatures = _signatures(federation, roll, signing, attempt)
        if not {*members} <= {*federation.sites}:
            continue
        seeds = _seeds(federation, ReleaseOrder(roll, signatures), releasing, attempt)
        return order, secure_sum.unmask(cells, seeds, binding, bits)


def well_formed(
    federation: Federation, shape: tuple[int, int], replies: Mapping[str, Summand], of: str
) -> dict[str, NDArray[Any]]:
    """What is to be added up; who sends another shape is out of the round."""
    for site, reply in replies.items():
        if reply.counts.shape != shape:
            federation.leave_out(site, f"sent counts of {len(reply.counts)} {of} for {shape[0]}")
    return {site: reply.counts for site, reply in replies.items() if site in federation.sites}


def _signatures(federation: Federation, roll: Roll, step: str, attempt: int) -> dict[str, bytes]:
    members = roll.binding.participants
    signed = ask(federation, step, dict.fromkeys(members, SignOrder(roll)), Signature, attempt)
    for site, reply in signed.items():
        if not federation.verify(site, roll.words(), reply.signature):
            federation.leave_out(site, "signed another list than the one it was shown")
    return {site: reply.signature for site, reply in signed.items()}


def _seeds(federation: Federation, order: ReleaseOrder, step: str, attempt: int) -> dict[str, bytes]:
    members = order.roll.binding.participants
    released = ask(federation, step, dict.fromkeys(members, order), ReleasedSeed, attempt)
    if lost := sorted({*members} - {*released}):
        raise RoundVoid(f"{', '.join(lost)} did not release: the sum can't be opened")
    return {site: reply.seed for site, reply in released.items()}
