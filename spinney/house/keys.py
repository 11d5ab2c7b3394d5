"""A house's keys and their files: the long-lived signing key, and round keys that are destroyed after the round.

Folders have mode 0700 and files 0600. What is open to others is refused, not mended: somebody may have been there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from spinney.errors import Refused, SpinneyError
from spinney.storage.files import write_whole
from spinney.storage.private import locked, read_private

KEY_VARIABLE = "SPINNEY_SIGNING_KEY"


class KeysUnusable(SpinneyError):
    """A key is missing or damaged; the message says what to do."""


class KeyRefused(Refused):
    """Another house's round key is no proper key."""


@dataclass(frozen=True)
class Identity:
    """A house's long-lived signing key."""

    private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def new(cls) -> Identity:
        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes_raw()

    def sign(self, words: bytes) -> bytes:
        """Callers begin their words with a purpose, so that no signature serves two."""
        return self.private.sign(words)

    def pem(self) -> bytes:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @classmethod
    def from_pem(cls, pem: bytes, where: str) -> Identity:
        try:
            private = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # from None: nothing of a key in a traceback
            raise KeysUnusable(f"{where} holds no readable key; restore it from its backup") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise KeysUnusable(f"{where} holds another kind of key; it takes Ed25519, as `spinney keys new` makes it")
        return cls(private)


def verify(public: bytes, words: bytes, signature: bytes) -> bool:
    """Whether the owner of a public signing key signed these words."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, words)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(public: bytes) -> str:
    """Thirty digits to read out on the telephone."""
    digits = f"{int.from_bytes(hashlib.sha256(b'spinney fingerprint 1' + public).digest()) % 10**30:030d}"
    return " ".join(digits[at : at + 5] for at in range(0, 30, 5))


class KeyRing:
    """The signing keys in a house's folder: the one in use, and the next one while a rotation is under way."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "keys"
        self.current, self.next = self.folder / "identity.pem", self.folder / "next.pem"

    def create(self) -> Identity:
        """The first key of a house."""
        with locked(self.folder):
            if self.current.exists():
                raise KeysUnusable(f"{self.current} is there already; to replace it: spinney keys rotate")
            identity = Identity.new()
            write_whole(self.current, identity.pem())
        return identity

    def identity(self, listed: bytes | None = None) -> Identity:
        """The key to sign with: the one that the roster lists, or else the one in use."""
        own = self.all()
        if not own:
            raise KeysUnusable(f"no signing key in {KEY_VARIABLE} or {self.current}; make one: spinney keys new")
        if listed is None:
            return next(iter(own.values()))
        for identity in own.values():
            if identity.public == listed:
                return identity
        raise KeysUnusable(f"the roster lists {fingerprint(listed)}, which is none of this house's keys; join again")

    def retire_old(self, needed: Set[bytes]) -> bool:
        """The next key takes the old one's place, and the old one is destroyed, if only the next is needed."""
        with locked(self.folder):
            own = self.all()
            following = own.pop(str(self.next), None)
            if following is None or following.public not in needed or {one.public for one in own.values()} & needed:
                return False
            self.next.replace(self.current)
        return True

    @property
    def rotating(self) -> bool:
        """Whether there is a next key."""
        return self.next.exists()

    def next_identity(self) -> Identity:
        """The key after this one, the same until it is in use; not used before the roster lists it."""
        with locked(self.folder):
            if not self.next.exists():
                write_whole(self.next, Identity.new().pem())
        return Identity.from_pem(read_private(self.next), str(self.next))

    def all(self) -> dict[str, Identity]:
        """Where each key is: in the environment first, then in files that nobody else may read."""
        pem = os.environ.get(KEY_VARIABLE)
        own = {} if pem is None else {KEY_VARIABLE: Identity.from_pem(pem.encode(), KEY_VARIABLE)}
        for path in (self.current, self.next):
            if path.exists():
                own[str(path)] = Identity.from_pem(read_private(path), str(path))
        return own


@dataclass(frozen=True)
class RoundKey:
    """A house's key for what is sealed for it in one round."""

    owner: str
    private: X25519PrivateKey = field(repr=False)

    @classmethod
    def new(cls, owner: str) -> RoundKey:
        return cls(owner, X25519PrivateKey.generate())

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes_raw()


def check_round_key(public: bytes, owner: str) -> None:
    """Refuse a key that others could open, when it arrives rather than when somebody seals for it."""
    agree(X25519PrivateKey.generate(), public, owner)


def agree(private: X25519PrivateKey, public: bytes, owner: str) -> bytes:
    """The secret that two keys share."""
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # a wrong length, or a low-order point that would make the secret known to everybody
        raise KeyRefused(f"the round key of {owner} is no proper X25519 key; {owner} has to make a new one") from None
