"""A house's desk in one round: what goes out is sealed, kept and published; what comes in is checked and noted.

Sealed bytes are written to the private outbox before they are published, and published again verbatim after a restart,
so that a message exists once. Nothing goes out or comes in without a line in the audit log.

Where somebody else's bytes lie at a message's address, they are noted and passed over, and the message goes to the next
of a few spare addresses: `ask003.1`, `ask003-spare1.1`, ... Readers look there in the same order and believe only what
its sender has signed. Names are known beforehand, so nobody lists a folder that could be flooded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from spinney.base import is_file_name
from spinney.connectors.exchange import Address, Clock, Exchange, SecondCopy
from spinney.errors import Refused, in_short
from spinney.house import envelopes as security
from spinney.house.addresses import addresses
from spinney.house.audit import Audit, AuditEntry
from spinney.house.envelopes import EnvelopeRefused, MessageId, UnknownSender
from spinney.house.keys import Identity, RoundKey
from spinney.house.sent import SentMessages
from spinney.storage.files import sync_folder, write_whole
from spinney.storage.private import private_folder

PARCEL = "parcel-"

T = TypeVar("T")


@dataclass(frozen=True)
class RoundChannel:
    """Everything that a house needs to write and read letters in one round of one study."""

    home: Path
    me: str
    study: str  # the study's name, for addresses
    digest: str  # the study's digest, for seals
    round: int
    identity: Identity
    key: RoundKey
    roster: Mapping[str, bytes]  # name -> public signing key
    exchange: Exchange
    audit: Audit
    clock: Clock
    patience: timedelta = timedelta(minutes=30)  # with an exchange that is away
    _passed_over: dict[Address, Refused] = field(default_factory=dict, repr=False)

    def publish(
        self,
        step: str,
        attempt: int,
        kind: str,
        write: Callable[[], bytes],
        recipients: Mapping[str, bytes],
        title: str = "",
    ) -> None:
        """Seal what `write` gives for the recipients (name -> public round key), once; signed only without any.

        In the log the step may have a title that says more than its name on the exchange.
        """
        _ = [*addresses(self.study, self.me, self.round, step, attempt)]  # or BadAddress, before a file is called so
        kept = private_folder(self.home / "outbox" / self.study / str(self.round)) / f"{step}.{attempt}"
        if not kept.exists():
            draft = kept.with_name(f"{kept.name}.sealed")  # becomes `kept` once the log tells of it, not before
            if not draft.exists():
                content = write()
                sealed = security.seal(content, self._message(self.me, step, attempt), self.identity, recipients)
                SentMessages(self.home, self.study).keep(self.round, sealed, self.digest, kind, content)
                write_whole(draft, sealed)
            self._note("sent", kind, ", ".join(sorted(recipients)), title or step, draft.read_bytes())
            draft.rename(kept)
            sync_folder(kept.parent)  # what was published must be here after a power cut, too
        self.insist(lambda: self._place(step, attempt, kept.read_bytes()))

    def has_sent(self, step: str, attempt: int) -> bool:
        """Whether this was written before, perhaps by a process that was killed."""
        return (self.home / "outbox" / self.study / str(self.round) / f"{step}.{attempt}").exists()

    def look(
        self,
        sender: str,
        step: str,
        attempt: int,
        kind: str | Callable[[bytes], str],
        limit: int = security.LARGEST,
    ) -> bytes | None:
        """What a sender has left for us there, or None as long as it hasn't; what others have left is no answer.

        Its kind is for the log, and may be seen in the content only.
        Refused is raised only for what the sender has signed as this very message, and for a sender whom nobody knows.
        """
        if sender not in self.roster:  # others have given this name, and it may be anything
            stranger = UnknownSender(f"round {self.round}, {step}")
            self.refused(sender if is_file_name(sender) else "somebody without a proper name", step, stranger)
            raise stranger
        for address in addresses(self.study, sender, self.round, step, attempt):
            if address in self._passed_over:  # objects are written once, so it is still what it was
                continue
            try:
                sealed = self.exchange.get(address, limit)
                if sealed is None:
                    return None
                content = security.open(sealed, self._message(sender, step, attempt), self.roster, self.key, limit)
            except EnvelopeRefused as reason:
                self._pass_over(address, sender, step, reason)
                if reason.by_sender:
                    raise
            except Refused as reason:
                self._pass_over(address, sender, step, reason)
            else:
                self._note("received", kind if isinstance(kind, str) else kind(content), sender, step, sealed)
                return content
        return None

    def insist(self, work: Callable[[], T]) -> T:
        """Do something at the exchange, again and again as long as it is away."""
        done: list[T] = []

        def attempt() -> int:
            done.append(work())
            return 0

        self.exchange.poll(attempt, self.patience, self.clock)
        return done[0]

    def refused(self, sender: str, step: str, reason: Refused) -> None:
        """Note what was not accepted, and from whom."""
        entry = AuditEntry(direction="refused", kind=type(reason).__name__, peer=sender, study=self.study, step=step)
        self.audit.append(entry.model_copy(update={"round": self.round, "words": in_short(reason)}), self.clock.now())

    def _place(self, step: str, attempt: int, sealed: bytes) -> None:
        for address in addresses(self.study, self.me, self.round, step, attempt):
            try:
                return self.exchange.put(address, sealed)
            except SecondCopy as taken:
                if self._is_mine(address, step, attempt):
                    raise
                last = taken
                self._pass_over(address, self.me, step, taken)
        raise last

    def _is_mine(self, address: Address, step: str, attempt: int) -> bool:
        """Whether what lies there was signed by this house as this message: then it has spoken with two tongues."""
        try:
            sealed = self.exchange.get(address, security.LARGEST)
            security.open(sealed or b"", self._message(self.me, step, attempt), self.roster, self.key)
        except EnvelopeRefused as reason:
            return reason.by_sender
        except Refused:
            return False
        return True

    def _pass_over(self, address: Address, sender: str, step: str, reason: Refused) -> None:
        """Noted once, however often it is looked at."""
        if address not in self._passed_over:
            self._passed_over[address] = reason
            self.refused(sender, step, reason)

    def _note(self, direction: str, kind: str, peer: str, step: str, sealed: bytes) -> None:
        digest = hashlib.sha256(sealed).hexdigest()
        entry = AuditEntry.model_validate(
            {
                "direction": direction,
                "kind": kind,
                "peer": peer,
                "study": self.study,
                "round": self.round,
                "step": step,
                "bytes": len(sealed),
                "digest": digest,
            }
        )
        self.audit.append(entry, self.clock.now())

    def _message(self, sender: str, step: str, attempt: int) -> MessageId:
        return MessageId(self.digest, self.round, step, attempt, sender)
