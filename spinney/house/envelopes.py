"""Envelopes: Ed25519 signatures, X25519 + HKDF + ChaCha20-Poly1305, all from `cryptography`.

    "SPNE" | version u8 | size of header u16 | size of content u32 | checksum | signature | header | content

Whoever opens an envelope knows which message he expects there. Size, checksum and signature are checked before a byte
of the header is parsed. The content is encrypted once, under a key from a secret that is hidden for each recipient's
round key; with one recipient the secret is what both keys agree on, and with none the content is signed only. Nonces
are zero because no key is used twice.

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
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from spinney.errors import Refused
from spinney.federation.seam import Digest
from spinney.house import encoding as wire
from spinney.house.keys import (
    Identity,
    KeyRefused,
    KeysUnusable,
    RoundKey,
    agree,
    verify,
)
from spinney.storage.files import write_whole
from spinney.storage.private import locked, read_private

LARGEST = 128 * 1024 * 1024
MAGIC, VERSION = b"SPNE", 4
START = struct.Struct(">4sBHI")
CHECK_BYTES = 4  # of a SHA-256: tells an accident from an attack, and protects nothing by itself
SIGNATURE_AT = START.size + CHECK_BYTES
PREFIX_BYTES = SIGNATURE_AT + 64
SECRET_BYTES = 16  # as strong as X25519
KEY_BYTES = 32
TAG_BYTES = 16  # that encryption adds to a content
MOST_RECIPIENTS = 4_000  # whose secrets fit into a header
STUDY_DIGITS = 16
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

    study: Digest
    round: int
    step: str
    attempt: int
    sender: str

    def __str__(self) -> str:
        return f"{self.sender}, round {self.round}, {self.step}.{self.attempt}"


@dataclass(frozen=True)
class Header:
    """Signed, and bound to the content as associated data."""

    message: MessageId  # with the beginning of the study's digest; all of it is bound to the content's key
    lock: bytes  # empty where the content is signed only

    @classmethod
    def of(cls, message: MessageId, *lock: bytes) -> Header:
        return cls(replace(message, study=message.study[:STUDY_DIGITS]), b"".join(lock))

    @property
    def ephemeral(self) -> bytes:
        """The public half of a key that was made for this envelope."""
        return self.lock[:KEY_BYTES]

    @property
    def commitment(self) -> bytes:
        """To the secret, or a ciphertext could be made that opens as two contents; none for a single recipient."""
        return self.lock[KEY_BYTES : 2 * KEY_BYTES]

    @property
    def hidden(self) -> list[bytes]:
        """The secret under the pad of each recipient, if there are several."""
        return [self.lock[at : at + SECRET_BYTES] for at in range(2 * KEY_BYTES, len(self.lock), SECRET_BYTES)]

    def __post_init__(self) -> None:
        for_many = len(self.lock) - 2 * KEY_BYTES
        if len(self.lock) not in (0, KEY_BYTES) and (for_many < 2 * SECRET_BYTES or for_many % SECRET_BYTES):
            raise Refused("a lock has nothing, a key, or a key, a commitment and two secrets or more")


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
        return _signed(wire.pack(Header.of(message)), content, signer)
    if len(recipients) > MOST_RECIPIENTS:
        raise ValueError(f"{message} has {len(recipients)} recipients; an envelope has at most {MOST_RECIPIENTS}")
    private = X25519PrivateKey.generate()
    ephemeral = private.public_key().public_bytes_raw()
    pads = [_pad(agree(private, key, name), message, ephemeral, key) for name, key in recipients.items()]
    if len(pads) == 1:
        secret, header = pads[0], Header.of(message, ephemeral)
    else:
        secret = os.urandom(SECRET_BYTES)
        header = Header.of(message, ephemeral, _commitment(secret), *(_combined(pad, secret) for pad in pads))
    packed = wire.pack(header)
    return _signed(packed, _cipher(secret, message).encrypt(NO_NONCE, content, _associated(packed)), signer)


def open(
    data: bytes, message: MessageId, keys: Mapping[str, bytes], own: RoundKey | None = None, limit: int = LARGEST
) -> bytes:
    """The content, if this is that message from that sender, for us; otherwise an EnvelopeRefused.

    `keys` are the signing keys of the roster by name.
    """
    digest, header_bytes, body = _intact(data, message, limit)
    _check_signature(data[SIGNATURE_AT:PREFIX_BYTES], digest, message, keys)
    try:
        header = wire.unpack(header_bytes, Header)
    except Refused:
        raise Damaged(message, "its sender signed a header that is none", by_sender=True) from None
    _check_place(header.message, Header.of(message).message)
    if not header.lock:
        return bytes(body)
    secret = _secret(header, message, own)
    try:
        return _cipher(secret, message).decrypt(NO_NONCE, body, _associated(header_bytes))
    except InvalidTag:
        if not header.commitment:
            raise NotForUs(message, "or it can't be decrypted", by_sender=True) from None
        raise Damaged(message, "its sender signed a content that can't be decrypted", by_sender=True) from None


def is_of_another_study(reason: EnvelopeRefused) -> bool:
    """Whether the only thing wrong with a message is that its sender has changed the study since, or not yet."""
    return isinstance(reason, ReAddressed) and str(reason).endswith("(another study)")


def _signed(header: bytes, body: bytes, signer: Identity) -> bytes:
    start = START.pack(MAGIC, VERSION, len(header), len(body))
    digest = _digest(start, header, body)
    return b"".join((start, digest[:CHECK_BYTES], signer.sign(_words(digest)), header, body))


def _associated(header: bytes) -> bytes:
    return MAGIC + bytes([VERSION]) + header


def _digest(*parts: bytes | memoryview) -> bytes:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
    return hasher.digest()


def _words(digest: bytes) -> bytes:
    return b"spinney envelope 2\0" + digest


def _intact(data: bytes, message: MessageId, limit: int) -> tuple[bytes, bytes, memoryview]:
    """Digest, header and content of something that has the form of an envelope; nothing has been looked into."""
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
    digest = _digest(view[: START.size], view[PREFIX_BYTES:])
    if digest[:CHECK_BYTES] != data[START.size : SIGNATURE_AT]:
        raise Damaged(message, "its digest is another")
    return digest, bytes(view[PREFIX_BYTES : PREFIX_BYTES + header_size]), view[PREFIX_BYTES + header_size :]


def _check_signature(signature: bytes, digest: bytes, message: MessageId, keys: Mapping[str, bytes]) -> None:
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


def _secret(header: Header, message: MessageId, own: RoundKey | None) -> bytes:
    """What the content's key is made of, if it was hidden for us."""
    if own is None:
        raise NotForUs(message, by_sender=True)
    try:
        shared = agree(own.private, header.ephemeral, message.sender)
    except KeyRefused:
        raise Damaged(message, "its sender signed a key that is none", by_sender=True) from None
    pad = _pad(shared, message, header.ephemeral, own.public)
    if not header.commitment:
        return pad
    for hidden in header.hidden:  # the right one is known by the commitment, not by a name
        secret = _combined(pad, hidden)
        if _commitment(secret) == header.commitment:
            return secret
    raise NotForUs(message, "sealed for another round key", by_sender=True)


def _pad(shared: bytes, message: MessageId, ephemeral: bytes, public: bytes) -> bytes:
    """What hides a secret once: nobody but the owner of this public key can know it."""
    return _derived(shared, b"spinney pad 2\0" + _digest(wire.pack(message)) + ephemeral + public, SECRET_BYTES)


def _combined(pad: bytes, secret: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(pad, secret, strict=True))


def _cipher(secret: bytes, message: MessageId) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(_derived(secret, b"spinney content 2\0" + _digest(wire.pack(message)), 32))


def _derived(secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=info).derive(secret)


def _commitment(secret: bytes) -> bytes:
    return _digest(b"spinney secret 2\0", secret)
