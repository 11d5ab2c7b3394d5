"""Envelopes: Ed25519 signatures, X25519 + HKDF + ChaCha20-Poly1305, all from `cryptography`.

    "SPNE" | version u8 | size of header u32 | size of content u64 | SHA-256 of all else | signature | header | content

Whoever opens an envelope knows which message he expects there. Size, digest and signature are checked before a byte of
the header is parsed. The content is encrypted once under a fresh key, and that key is wrapped for each recipient's
round key; with no recipients it is signed only. Nonces are zero because no key is used twice.

Refused
└── EnvelopeRefused
    ├── Oversized         larger than this house accepts
    ├── Truncated         shorter than it says
    ├── UnknownVersion    of a format that this house doesn't know
    ├── Damaged           changed on the way, or never an envelope
    ├── Unsigned          no signature
    ├── UnknownSender     the roster doesn't name the sender
    ├── WrongSignature    not signed by the one at whose address it was found
    ├── ReAddressed       signed, but made for another address
    ├── Replayed          signed, but made for an earlier round or attempt, or a round that is over here
    ├── WrongRound        signed, but made for a round that is yet to come
    └── NotForUs          sealed for others, or for a key that is gone
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from connectors import wire
from connectors.keys import (
    Identity,
    KeyRefused,
    KeysUnusable,
    RoundKey,
    agree,
    locked,
    read_private,
    verify,
)
from connectors.memory import write_whole
from spinney.errors import Refused

LARGEST = 128 * 1024 * 1024
MAGIC, VERSION = b"SPNE", 1
START = struct.Struct(">4sBIQ")
PREFIX_BYTES = START.size + 32 + 64
NO_NONCE = bytes(12)


class EnvelopeRefused(Refused):
    """An envelope is not accepted; says where it was found, and why not."""

    why: ClassVar[str]

    def __init__(self, where: object, detail: str = "", *, by_sender: bool = False) -> None:
        super().__init__(f"{where}: {self.why}" + (f" ({detail})" if detail else ""))
        self.by_sender = by_sender  # signed as this very message, so it is the sender's word and no other will come


class Oversized(EnvelopeRefused):
    why = "larger than this house accepts"


class Truncated(EnvelopeRefused):
    why = "shorter than it says"


class UnknownVersion(EnvelopeRefused):
    why = "of a format that this house doesn't know; is one of the houses out of date?"


class Damaged(EnvelopeRefused):
    why = "changed on the way, or never an envelope"


class Unsigned(EnvelopeRefused):
    why = "not signed"


class UnknownSender(EnvelopeRefused):
    why = "the roster names no such sender"


class WrongSignature(EnvelopeRefused):
    why = "not signed by its sender, or signed with a key that the roster doesn't name any more"


class ReAddressed(EnvelopeRefused):
    why = "properly signed, but made for another address"


class Replayed(EnvelopeRefused):
    why = "an old message that was sent again"


class WrongRound(EnvelopeRefused):
    why = "made for a round that is yet to come"


class NotForUs(EnvelopeRefused):
    why = "sealed for others, or for a key that this house doesn't have any more"


@dataclass(frozen=True)
class MessageId:
    """What a message is bound to: nobody can use it anywhere else."""

    study: str  # the study's digest
    round: int
    step: str
    attempt: int
    sender: str

    def __str__(self) -> str:
        return f"{self.sender}, round {self.round}, {self.step}.{self.attempt}"


@dataclass(frozen=True)
class Header:
    """Signed, and bound to the content as associated data."""

    message: MessageId
    recipients: Mapping[str, bytes]  # name -> the content's key, wrapped
    ephemeral: bytes
    commitment: bytes  # to the content's key, or one envelope could show two recipients two contents


class Rounds:
    """A house's rounds of one study: the newest that it has seen, and the key that lives as long as that round."""

    def __init__(self, home: Path, study: str, owner: str) -> None:
        self.study, self.owner = study, owner
        self.folder = home / "keys" / "rounds" / study
        self._note = self.folder / "newest.json"

    def enter(self, number: int, opening: str = "") -> RoundKey:
        """This round's key, the same after a restart; an older round, or another opening of this one, is a replay."""
        where = f"the opening of round {number} of {self.study}"
        with locked(self.folder):
            newest = self._newest()
            if number < newest["round"]:
                raise Replayed(where, f"this house has seen round {newest['round']}")
            if number == newest["round"] and newest["over"]:
                raise Replayed(where, "the round is over at this house")
            if number == newest["round"] and newest["opening"] != opening:
                raise Replayed(where, "the round was opened before with other words")
            if number > newest["round"]:
                self._remember(number, opening, over=False)
                self._destroy_keys()  # of a round that was killed before it could leave
            return self._key(number)

    @property
    def newest(self) -> int:
        """The highest round that this house has entered; 0 before the first."""
        return int(self._newest()["round"])

    @property
    def unfinished(self) -> int | None:
        """The round that this house has entered and not left, perhaps because it was killed."""
        newest = self._newest()
        return None if newest["over"] else int(newest["round"])

    def leave(self, number: int) -> None:
        """Destroy the round's key: from now on nobody can open what was sealed for it."""
        with locked(self.folder):
            newest = self._newest()
            if number == newest["round"]:
                self._remember(number, newest["opening"], over=True)
                self._destroy_keys()

    def _key(self, number: int) -> RoundKey:
        path = self.folder / f"{number}.key"
        if not path.exists():
            write_whole(path, RoundKey.new(self.owner).private.private_bytes_raw())
        raw = read_private(path)
        if len(raw) != 32:
            raise KeysUnusable(f"{path} is damaged; this house has to sit round {number} out")
        return RoundKey(self.owner, X25519PrivateKey.from_private_bytes(raw))

    def _destroy_keys(self) -> None:
        for path in self.folder.glob("*.key*"):  # also what a killed writer left; a leading dot hides nothing from glob
            with path.open("r+b") as file:  # over the old bytes; a file system that copies on write keeps them
                file.write(bytes(32))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()

    def _newest(self) -> dict[str, Any]:
        if not self._note.exists():
            return {"round": 0, "opening": "", "over": True}
        try:
            note = json.loads(self._note.read_bytes())
            return {"round": int(note["round"]), "opening": str(note["opening"]), "over": bool(note["over"])}
        except (ValueError, KeyError, TypeError):
            raise KeysUnusable(f"{self._note} is damaged; restore it, or a replayed round can't be noticed") from None

    def _remember(self, number: int, opening: str, *, over: bool) -> None:
        write_whole(self._note, json.dumps({"round": number, "opening": opening, "over": over}).encode())


# ---------------------------------------------------------------------------------------------------------------
# Envelopes


def seal(content: bytes, message: MessageId, signer: Identity, recipients: Mapping[str, bytes] | None = None) -> bytes:
    """Sign the content as this message; with recipients (name -> public round key), encrypt it for them."""
    if not recipients:
        return _signed(wire.pack(Header(message, {}, b"", b"")), content, signer)
    key, private = ChaCha20Poly1305.generate_key(), X25519PrivateKey.generate()
    ephemeral = private.public_key().public_bytes_raw()
    wrapped = {}
    for name, public in recipients.items():
        wrapping = _wrapping(agree(private, public, name), message, ephemeral, public)
        wrapped[name] = ChaCha20Poly1305(wrapping).encrypt(NO_NONCE, key, None)
    header = wire.pack(Header(message, wrapped, ephemeral, _commitment(key)))
    return _signed(header, ChaCha20Poly1305(key).encrypt(NO_NONCE, content, _associated(header)), signer)


def open(
    data: bytes, message: MessageId, keys: Mapping[str, bytes], own: RoundKey | None = None, limit: int = LARGEST
) -> bytes:
    """The content, if this is that message from that sender, for us; otherwise an EnvelopeRefused.

    `keys` are the signing keys of the roster by name.
    """
    header_bytes, body = _intact(data, message, limit)
    _check_signature(data, message, keys)
    try:
        header = wire.unpack(header_bytes, Header)
    except Refused:
        raise Damaged(message, "its sender signed a header that is none", by_sender=True) from None
    _check_place(header.message, message)
    if not header.recipients:
        return bytes(body)
    key = _content_key(header, message, own)
    try:
        return ChaCha20Poly1305(key).decrypt(NO_NONCE, body, _associated(header_bytes))
    except InvalidTag:
        raise Damaged(message, "its sender signed a content that can't be decrypted", by_sender=True) from None


def is_of_another_study(reason: EnvelopeRefused) -> bool:
    """Whether the only thing wrong with a message is that its sender has changed the study since, or not yet."""
    return isinstance(reason, ReAddressed) and str(reason).endswith("(another study)")


def _signed(header: bytes, body: bytes, signer: Identity) -> bytes:
    start = START.pack(MAGIC, VERSION, len(header), len(body))
    digest = _digest(start, header, body)
    return b"".join((start, digest, signer.sign(_words(digest)), header, body))


def _associated(header: bytes) -> bytes:
    return MAGIC + bytes([VERSION]) + header


def _digest(*parts: bytes | memoryview) -> bytes:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
    return hasher.digest()


def _words(digest: bytes) -> bytes:
    return b"spinney envelope 1\0" + digest


def _intact(data: bytes, message: MessageId, limit: int) -> tuple[bytes, memoryview]:
    """Header and content of something that has the form of an envelope; neither has been looked into."""
    if len(data) > limit:
        raise Oversized(message, f"{len(data)} bytes, at most {limit}")
    if len(data) < PREFIX_BYTES:
        raise Truncated(message, f"{len(data)} bytes")
    magic, version, header_size, size = START.unpack_from(data)
    if magic != MAGIC:
        raise Damaged(message, "no envelope")
    if version != VERSION:
        raise UnknownVersion(message, f"version {version}, here {VERSION}")
    missing = PREFIX_BYTES + header_size + size - len(data)
    if missing > 0:
        raise Truncated(message, f"{missing} bytes are missing")
    if missing < 0:
        raise Damaged(message, f"{-missing} bytes too many")
    view = memoryview(data)
    if _digest(view[: START.size], view[PREFIX_BYTES:]) != data[START.size : START.size + 32]:
        raise Damaged(message, "its digest is another")
    return bytes(view[PREFIX_BYTES : PREFIX_BYTES + header_size]), view[PREFIX_BYTES + header_size :]


def _check_signature(data: bytes, message: MessageId, keys: Mapping[str, bytes]) -> None:
    digest, signature = data[START.size : START.size + 32], data[START.size + 32 : PREFIX_BYTES]
    if signature == bytes(64):
        raise Unsigned(message)
    if message.sender not in keys:
        raise UnknownSender(message)
    if verify(keys[message.sender], _words(digest), signature):
        return
    signers = [name for name, key in keys.items() if verify(key, _words(digest), signature)]
    if signers:
        raise ReAddressed(message, f"it is signed by {signers[0]}")
    raise WrongSignature(message)


def _check_place(found: MessageId, expected: MessageId) -> None:
    if found == expected:
        return
    different = [part.name for part in fields(MessageId) if getattr(found, part.name) != getattr(expected, part.name)]
    if "study" not in different and "sender" not in different:
        if found.round > expected.round:
            raise WrongRound(expected, f"of round {found.round}")
        if found.round < expected.round or (different == ["attempt"] and found.attempt < expected.attempt):
            raise Replayed(expected, f"of round {found.round}, attempt {found.attempt}")
    raise ReAddressed(expected, f"another {', '.join(different)}")  # a hostile sender's own words stay out of the log


def _content_key(header: Header, message: MessageId, own: RoundKey | None) -> bytes:
    if own is None or own.owner not in header.recipients:
        raise NotForUs(message, by_sender=True)
    try:
        shared = agree(own.private, header.ephemeral, message.sender)
    except KeyRefused:
        raise Damaged(message, "its sender signed a key that is none", by_sender=True) from None
    wrapping = _wrapping(shared, message, header.ephemeral, own.public)
    try:
        key = ChaCha20Poly1305(wrapping).decrypt(NO_NONCE, header.recipients[own.owner], None)
    except InvalidTag:
        raise NotForUs(message, "sealed for another round key", by_sender=True) from None
    if len(key) != 32 or _commitment(key) != header.commitment:
        raise Damaged(message, "its sender signed a key that is not the content's", by_sender=True)
    return key


def _wrapping(shared: bytes, message: MessageId, ephemeral: bytes, public: bytes) -> bytes:
    info = b"spinney wrap 1\0" + _digest(wire.pack(message)) + ephemeral + public
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(shared)


def _commitment(key: bytes) -> bytes:
    return _digest(b"spinney content key 1\0", key)
