"""What this house has sent, as sent, for as long as the study keeps messages: so that a person can read it.

sent/<study>/<round>/<digest of the sealed bytes>    the study's digest, then the content

A sender can't open its own sealed bytes: the keys that could are gone. Never kept is what would open something that is
hidden from everybody: seeds of masks, sums on their way round a ring, and private keys, which no message has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

from spinney.errors import Refused, SpinneyError
from spinney.forest.codec import MAGIC
from spinney.house import encoding as wire
from spinney.house.audit import Line, what_is
from spinney.house.round_messages import Ask
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder

SECRETS = frozenset({"seed", "seeds", "guards"})  # fields of messages that take a mask off
DIGEST_BYTES = 32


class NotKept(SpinneyError):
    """A line of the log whose message nobody here can show; says why."""


@dataclass(frozen=True)
class SentMessage:
    """A message as it was before it was sealed."""

    study: str
    """The digest of the study that it was sent under."""
    content: bytes


class SentMessages:
    """Of one study in one house."""

    def __init__(self, home: Path, study: str) -> None:
        self.folder = home / "sent" / study

    def keep(self, round_: int, sealed: bytes, study: str, kind: str, content: bytes) -> None:
        """Before it is published. What may not be kept is not."""
        if may_be_kept(kind, content):
            folder = private_folder(self.folder / str(round_))
            write_whole(folder / hashlib.sha256(sealed).hexdigest(), bytes.fromhex(study) + content)

    def of(self, line: Line) -> SentMessage:
        """What a line of the audit log is about, or NotKept."""
        entry = line.entry
        if entry.direction != "sent":
            raise NotKept(f"line {line.number} is about nothing that this house has sent; only that is kept")
        path = self.folder / str(entry.round) / entry.digest
        if not path.exists():
            raise NotKept(
                f"line {line.number} ({what_is(entry.kind)}) is not kept: it is older than the study keeps messages, "
                "or it would open what is hidden from everybody (seeds of masks, sums in a ring)"
            )
        kept = path.read_bytes()
        return SentMessage(kept[:DIGEST_BYTES].hex(), kept[DIGEST_BYTES:])

    def expire(self, before: datetime) -> int:
        """Delete the rounds of which nothing is newer; says how many."""
        gone = 0
        for folder in self.folder.glob("[0-9]*/"):
            if max(path.stat().st_mtime for path in (folder, *folder.iterdir())) < before.timestamp():
                shutil.rmtree(folder)
                gone += 1
        return gone


def may_be_kept(kind: str, content: bytes) -> bool:
    """Whether nothing in it takes a mask off."""
    if kind in ("Opening", "Over"):
        return True
    if kind == "Parcel":
        return content.startswith(MAGIC)
    if kind == "Ask":
        try:
            asked = wire.unpack(wire.unsqueeze(content), Ask)
            return not any(_has_secrets(type(wire.decode_message(order.content))) for order in asked.orders)
        except Refused:
            return False
    return kind in wire.kinds() and not _has_secrets(wire.kinds()[kind])


def _has_secrets(kind: type[Any]) -> bool:
    return any(name in SECRETS for name in _field_names(kind))


def _field_names(hint: Any) -> Iterator[str]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        for field in dataclasses.fields(hint):
            yield field.name
            yield from _field_names(hints[field.name])
    for inner in get_args(hint):
        yield from _field_names(inner)
