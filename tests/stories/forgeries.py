"""A seeded forger: what can be made of a real envelope by somebody on the way, by another member, or by its sender.

Every forgery is named after the refusal that it must meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from spinney.house import encoding as wire
from spinney.house import envelopes as security
from spinney.house.envelopes import PREFIX_BYTES, SIGNATURE_AT, START, VERSION, MessageId
from spinney.house.keys import Identity, RoundKey

Forgery = tuple[str, bytes, MessageId]  # the refusal, the bytes, and the message that the reader expects there


@dataclass(frozen=True)
class Forger:
    """Has every key of the house that it plays: nobody's, another member's, or the sender's own."""

    rng: random.Random
    sender: Identity
    member: Identity
    limit: int

    def forge(self, sealed: bytes, message: MessageId) -> Forgery:
        """One of all that it knows."""
        return self.rng.choice(_DEEDS)(self, sealed, message)

    def changed(self, sealed: bytes, message: MessageId) -> Forgery:
        """One bit, somewhere behind the sizes."""
        at = self.rng.randrange(START.size, len(sealed))
        flipped = bytes([sealed[at] ^ (1 << self.rng.randrange(8))])
        refusal = "WrongSignature" if SIGNATURE_AT <= at < PREFIX_BYTES else "Damaged"
        return refusal, sealed[:at] + flipped + sealed[at + 1 :], message

    def cut(self, sealed: bytes, message: MessageId) -> Forgery:
        return "Truncated", sealed[: self.rng.randrange(len(sealed))], message

    def longer(self, sealed: bytes, message: MessageId) -> Forgery:
        return "Damaged", sealed + self.rng.randbytes(self.rng.randrange(1, 100)), message

    def noise(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        return "Damaged", b"noise" + self.rng.randbytes(PREFIX_BYTES + self.rng.randrange(2000)), message

    def other_version(self, sealed: bytes, message: MessageId) -> Forgery:
        return "UnknownVersion", sealed[:4] + bytes([self.rng.randrange(VERSION + 1, 256)]) + sealed[5:], message

    def unsigned(self, sealed: bytes, message: MessageId) -> Forgery:
        return "Unsigned", sealed[:SIGNATURE_AT] + bytes(64) + sealed[PREFIX_BYTES:], message

    def huge(self, sealed: bytes, message: MessageId) -> Forgery:
        return "ObjectTooLarge", sealed + bytes(self.limit), message

    def by_a_stranger(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        return "WrongSignature", self._content(message, Identity.new()), message

    def by_a_member(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        return "ReAddressed", self._content(message, self.member), message

    def of_another_step(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        return "ReAddressed", self._content(replace(message, step="elsewhere"), self.sender), message

    def of_another_study(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        return "ReAddressed", self._content(replace(message, study="0" * 64), self.sender), message

    def of_last_night(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        return "Replayed", self._content(replace(message, round=message.round - 1), self.sender), message

    def of_tomorrow(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        later = replace(message, round=message.round + self.rng.randrange(1, 9))
        return "WrongRound", self._content(later, self.sender), message

    def for_others(self, sealed: bytes, message: MessageId) -> Forgery:  # noqa: ARG002
        others = {"somebody": RoundKey.new("somebody").public}
        return "NotForUs", security.seal(self.rng.randbytes(50), message, self.sender, others), message

    def _content(self, message: MessageId, signer: Identity) -> bytes:
        return security.seal(self.rng.randbytes(self.rng.randrange(1, 300)), message, signer)


_DEEDS: tuple[Callable[[Forger, bytes, MessageId], Forgery], ...] = (
    Forger.changed,
    Forger.cut,
    Forger.longer,
    Forger.noise,
    Forger.other_version,
    Forger.unsigned,
    Forger.huge,
    Forger.by_a_stranger,
    Forger.by_a_member,
    Forger.of_another_step,
    Forger.of_another_study,
    Forger.of_last_night,
    Forger.of_tomorrow,
    Forger.for_others,
)
REFUSALS = frozenset(
    {
        "Damaged",
        "NotForUs",
        "ObjectTooLarge",
        "ReAddressed",
        "Replayed",
        "Truncated",
        "Unsigned",
        "UnknownVersion",
        "WrongRound",
        "WrongSignature",
    }
)


def letter(content: bytes) -> bytes:
    """Content as a letter travels."""
    return wire.squeeze(content)
