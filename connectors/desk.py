"""A house's desk in one round: what goes out is sealed, kept and published; what comes in is checked and noted.

Sealed bytes are written to the private outbox before they are published, and published again verbatim after a restart,
so that a message exists once. Nothing goes out or comes in without a line in the audit log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from connectors import security
from connectors.audit import Audit, Entry
from connectors.exchange import Address, Clock, Exchange
from connectors.keys import Identity, RoundKey
from connectors.memory import private_folder, write_whole
from connectors.security import MessageId
from spinney.errors import Refused

PARCEL = "parcel-"


@dataclass(frozen=True)
class Desk:
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

    def publish(
        self, step: str, attempt: int, kind: str, write: Callable[[], bytes], recipients: Mapping[str, bytes]
    ) -> None:
        """Seal what `write` gives for the recipients (name -> public round key), once; signed only without any."""
        address = self._address(self.me, step, attempt)
        kept = private_folder(self.home / "outbox" / self.study / str(self.round)) / f"{step}.{attempt}"
        if not kept.exists():
            sealed = security.seal(write(), self._message(self.me, step, attempt), self.identity, recipients)
            write_whole(kept, sealed)
            self._note("sent", kind, ", ".join(sorted(recipients)), step, sealed)
        self.exchange.put(address, kept.read_bytes())

    def has_sent(self, step: str, attempt: int) -> bool:
        """Whether this was written before, perhaps by a process that was killed."""
        return (self.home / "outbox" / self.study / str(self.round) / f"{step}.{attempt}").exists()

    def collect(self, sender: str, step: str, attempt: int, kind: str, limit: int = security.LARGEST) -> bytes | None:
        """What a sender has left for us there, or None; whatever is wrong with it is noted and refused."""
        try:
            sealed = self.exchange.get(self._address(sender, step, attempt), limit)
            if sealed is None:
                return None
            content = security.open(sealed, self._message(sender, step, attempt), self.roster, self.key, limit)
        except Refused as reason:
            self.refused(sender, step, reason)
            raise
        self._note("received", kind, sender, step, sealed)
        return content

    def refused(self, sender: str, step: str, reason: Refused) -> None:
        """Note what was not accepted, and from whom."""
        entry = Entry(direction="refused", kind=type(reason).__name__, peer=sender, study=self.study, step=step)
        self.audit.append(entry.model_copy(update={"round": self.round, "words": str(reason)}), self.clock.now())

    def _note(self, direction: str, kind: str, peer: str, step: str, sealed: bytes) -> None:
        digest = hashlib.sha256(sealed).hexdigest()
        entry = Entry.model_validate(
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

    def _address(self, sender: str, step: str, attempt: int) -> Address:
        return Address(self.study, sender, self.round, step, attempt)

    def _message(self, sender: str, step: str, attempt: int) -> MessageId:
        return MessageId(self.digest, self.round, step, attempt, sender)
