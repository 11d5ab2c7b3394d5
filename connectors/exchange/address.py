"""Where a message lies: `<study>/<sender>/<round>/<step>.<attempt>`, in names that every store and Windows can hold."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from spinney.base import is_file_name
from spinney.connectors.exchange.errors import BadAddress

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")  # one spelling per number, or one message would have two addresses
_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}\.part")


def check_name(text: str) -> str:
    """The name, if it is one."""
    if not is_file_name(text):
        raise BadAddress(
            f"{text[:80]!r} cannot be part of an address: choose a name of at most 64 letters, digits, dots, _ or - "
            "that begins with a letter, does not end with a dot, and is no device of Windows like con or nul"
        )
    return text


def read_number(text: str) -> int | None:
    """The number of a round or an attempt, if that is what the text is."""
    return int(text) if _NUMBER.fullmatch(text) else None


@dataclass(frozen=True, order=True)
class Address:
    """Of exactly one message."""

    study: str
    sender: str
    round: int
    step: str
    attempt: int = 1

    def __post_init__(self) -> None:
        for name in (self.study, self.sender, self.step):
            check_name(name)
        for number in (self.round, self.attempt):
            if read_number(str(number)) is None:
                raise BadAddress(f"{str(number)[:80]} is no number of a round or an attempt: 0 to 999999999")

    @property
    def folder(self) -> str:
        """Where all messages of this sender in this round are."""
        return round_folder(self.study, self.sender, self.round)

    def __str__(self) -> str:
        return f"{self.folder}/{self.step}.{self.attempt}"


def round_folder(study: str, sender: str, round: int) -> str:
    """Where one sender's messages of one round are."""
    return f"{check_name(study)}/{check_name(sender)}/{round}"


def read_address(study: str, sender: str, round: int, name: str) -> Address | None:
    """The address of an object with this name, or nothing if no message is called so."""
    step, _, attempt = name.rpartition(".")
    number = read_number(attempt)
    return None if number is None or not is_file_name(step) else Address(study, sender, round, step, number)


def draft_name(name: str) -> str:
    """A fresh name for something half-written; no address looks like it."""
    return f".{name}.{secrets.token_hex(8)}.part"


def is_draft(name: str) -> bool:
    """Whether a writer left this, perhaps because it was killed."""
    return _DRAFT.fullmatch(name) is not None
