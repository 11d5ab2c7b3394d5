"""A site that can't take part tonight says so, so that nobody waits for it.

The coordinator learns one word of three; why it was said stays in the site's own report. More would tell of its
patients: how many there are, or which rule they break. Peers learn nothing but that the round runs without it.
"""

from __future__ import annotations

from datetime import timedelta

from spinney.errors import CohortRejected, Declined, SpinneyError, StudyInvalid
from spinney.federation.seam import Decline
from spinney.house import encoding as wire
from spinney.house.approvals import NotApproved
from spinney.house.channel import RoundChannel
from spinney.house.round_messages import Ask, Opening, ask_name

TECHNICAL, DATA, GOVERNANCE = "declined: technical", "declined: data", "declined: governance"
LARGEST = wire.LARGEST + 64 * 1024


def word_for(reason: SpinneyError) -> str:
    """All that the coordinator is told of an error."""
    if isinstance(reason, CohortRejected):
        return DATA
    return GOVERNANCE if isinstance(reason, Declined | NotApproved | StudyInvalid) else TECHNICAL


def say_no(channel: RoundChannel, coordinator: str, word: str, patience: timedelta) -> bool:
    """Answer the first question of a round; False if this house is not asked, or the coordinator falls silent."""

    def heard(step: str, kind: str) -> bytes | None:
        return channel.exchange.wait_until(
            lambda: channel.look(coordinator, step, 1, kind, LARGEST), patience, channel.clock
        )

    opened, asked = heard("opening", "Opening"), heard(ask_name(1), "Ask")
    if opened is None or asked is None:
        return False
    opening, ask = wire.unpack(opened, Opening), wire.unpack(wire.unsqueeze(asked), Ask)
    if not any(channel.me in order.sites for order in ask.orders):
        return False
    letter = wire.squeeze(wire.encode_message(Decline(word)))
    channel.publish(ask.step, ask.attempt, Decline.__name__, lambda: letter, {coordinator: opening.key})
    return True
