"""Who takes part, and by which keys they are known: signed documents, apart from the study.

    Invite      coordinator -> site    "this is the study, this is my key"
    Joining     site -> coordinator    "this is mine"
    Roster      coordinator -> all     names and keys, a new version for every change
    Rotation    site -> coordinator    "my key is another from now on", signed by the old key

No signature says who somebody is: people compare fingerprints by telephone when they approve their first roster and
every newcomer. From then on a changed key counts only with a rotation that the old key signed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from spinney.base import FileName, Settings
from spinney.errors import Refused
from spinney.house.keys import Identity, fingerprint, verify
from spinney.storage.files import write_whole

LARGEST, LARGEST_TEXT = 5_000_000, 2_000_000
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Public Ed25519 key, hexadecimal.")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256, hexadecimal.")]


class RosterRefused(Refused):
    """A roster or a document on the way to it is not what it should be."""


class RotationRefused(RosterRefused):
    """A key was replaced, and its owner didn't sign that with the old one."""


class SignedDocument(Settings):
    """Something that a house signs, as a JSON file."""

    purpose: ClassVar[str]
    signature: Annotated[str, Field(pattern=r"^([0-9a-f]{128})?$")] = ""

    def words(self) -> bytes:
        """What is signed: everything but the signature, in one form."""
        plain = self.model_dump(mode="json", exclude={"signature"})
        return f"spinney {self.purpose} 1\0{json.dumps(plain, sort_keys=True, separators=(',', ':'))}".encode()

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.words()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """Thirty digits for the telephone: the same at two houses only if every word is the same."""
        return fingerprint(bytes.fromhex(self.digest))

    def signed(self, identity: Identity) -> Self:
        return self.model_copy(update={"signature": identity.sign(self.words()).hex()})

    def is_signed_by(self, key: str) -> bool:
        return verify(bytes.fromhex(key), self.words(), bytes.fromhex(self.signature))


class Invite(SignedDocument):
    """What a coordinator hands to a hospital that shall join."""

    purpose: ClassVar[str] = "invite"
    study: FileName
    study_digest: Digest
    site: FileName
    coordinator: FileName
    key: Key
    exchange: str = Field(description="Where messages are exchanged; access to it is given on another way.")
    version: int = Field(1, ge=1, description="Of the roster at that time; older ones are of no interest to the site.")
    text: str = Field("", max_length=LARGEST_TEXT, description="The study itself, as YAML.")


class Joining(SignedDocument):
    """A hospital's answer to an invite, signed with the key that it will sign with."""

    purpose: ClassVar[str] = "joining"
    study: FileName
    invite: Digest
    site: FileName
    key: Key


class Rotation(SignedDocument):
    """The old key says which key comes after it."""

    purpose: ClassVar[str] = "rotation"
    old: Key
    new: Key


class Roster(SignedDocument):
    """The houses of a study and their keys."""

    purpose: ClassVar[str] = "roster"
    study: FileName
    version: int = Field(ge=1)
    coordinator: FileName
    members: Mapping[FileName, Key]
    rotations: tuple[Rotation, ...] = Field((), description="All that ever were: a house may have been away for long.")

    @model_validator(mode="after")
    def _everybody_differs(self) -> Self:
        if self.coordinator not in self.members:
            raise ValueError("the coordinator is not among the members")
        if len(set(self.members.values())) < len(self.members):
            raise ValueError("two members have the same key")
        if len({name.lower() for name in self.members}) < len(self.members):
            raise ValueError("two names differ in capital letters only, which is one folder on some exchanges")
        if len({rotation.old for rotation in self.rotations}) < len(self.rotations):
            raise ValueError("one key was replaced twice")
        return self

    @property
    def keys(self) -> dict[str, bytes]:
        """What `security.open` needs."""
        return {name: bytes.fromhex(key) for name, key in sorted(self.members.items())}

    @property
    def sites(self) -> list[str]:
        return sorted({*self.members} - {self.coordinator})

    @property
    def fingerprints(self) -> dict[str, str]:
        """To read out, house by house."""
        return {name: fingerprint(key) for name, key in self.keys.items()}


@dataclass(frozen=True)
class Changes:
    """What a new roster changes for a house that approved an older one."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    rotated: tuple[str, ...]

    @property
    def need_approval(self) -> bool:
        """Newcomers have to be confirmed by people; rotations and departures explain themselves."""
        return bool(self.added)

    def in_words(self) -> str:
        """For people."""
        parts = (("new", self.added), ("gone", self.removed), ("with a new key", self.rotated))
        return "; ".join(f"{how}: {', '.join(who)}" for how, who in parts if who) or "nothing changes"


# ---------------------------------------------------------------------------------------------------------------
# The coordinator's side


def found_roster(study: str, coordinator: str, identity: Identity) -> Roster:
    """The first version: nobody but the coordinator."""
    members = {coordinator: identity.public.hex()}
    return Roster(study=study, version=1, coordinator=coordinator, members=members).signed(identity)


def invite(roster: Roster, study_digest: str, site: str, exchange: str, identity: Identity, text: str = "") -> Invite:
    """For one hospital, under the name that it will have."""
    plain = {
        "study": roster.study,
        "study_digest": study_digest,
        "site": site,
        "coordinator": roster.coordinator,
        "key": identity.public.hex(),
        "exchange": exchange,
        "version": roster.version,
        "text": text,
    }
    return _checked(Invite, plain, f"the invite of {site[:80]}").signed(identity)


def admit(roster: Roster, invited: Invite, joining: Joining, identity: Identity) -> Roster:
    """The next version, with a hospital that answered its invite."""
    ours = invited.is_signed_by(invited.key) and _leads_to(roster, invited.key, identity.public.hex())
    if not ours or invited.study != roster.study:
        raise RosterRefused(f"the invite of {invited.site} is not one of this coordinator's for {roster.study}")
    if not joining.is_signed_by(joining.key):
        raise RosterRefused(f"{joining.site} did not sign with the key that it wants to use; let it join again")
    if (joining.invite, joining.site) != (invited.digest, invited.site):
        raise RosterRefused(f"{joining.site} did not answer the invite of {invited.site}")
    if roster.members.get(joining.site, joining.key) != joining.key:
        raise RosterRefused(f"{joining.site} is in the roster with another key; that takes a rotation")
    return _next(roster, identity, members={**roster.members, joining.site: joining.key})


def dismiss(roster: Roster, site: str, identity: Identity) -> Roster:
    """The next version, without a hospital."""
    if site not in roster.sites:
        raise RosterRefused(f"{site} is no site of {roster.study}")
    return _next(roster, identity, members={name: key for name, key in roster.members.items() if name != site})


def rotate(roster: Roster, rotation: Rotation, identity: Identity) -> Roster:
    """The next version, with a member's new key. After its own rotation the coordinator signs with the new one."""
    owner = next((name for name, key in roster.members.items() if key == rotation.old), None)
    if owner is None:
        raise RotationRefused("the key that was replaced is nobody's in the roster")
    if not rotation.is_signed_by(rotation.old):
        raise RotationRefused(f"the new key of {owner} is not signed by its old one; let {owner} join again")
    members = {**roster.members, owner: rotation.new}
    return _next(roster, identity, members=members, rotations=(*roster.rotations, rotation))


def _next(roster: Roster, identity: Identity, **changes: object) -> Roster:
    plain = {**roster.model_dump(exclude={"signature"}), **changes, "version": roster.version + 1}
    return _checked(Roster, plain, "the new roster").signed(identity)


# ---------------------------------------------------------------------------------------------------------------
# The site's side


def join(invited: Invite, identity: Identity) -> Joining:
    """The answer to an invite."""
    check_invite(invited)
    key = identity.public.hex()
    return Joining(study=invited.study, invite=invited.digest, site=invited.site, key=key).signed(identity)


def check_invite(invited: Invite) -> None:
    """Whether it is as its coordinator wrote it; whose key that is, people ask by telephone."""
    if not invited.is_signed_by(invited.key):
        raise RosterRefused("the invite was changed on the way; ask for it again")


def rotation(old: Identity, new: Identity) -> Rotation:
    """What to send to the coordinator."""
    return Rotation(old=old.public.hex(), new=new.public.hex()).signed(old)


def accept(new: Roster, known: Roster | Invite) -> Changes:
    """What a roster changes, if it may follow the one that this house approved, or the invite if it has none yet."""
    pinned = known if isinstance(known, Roster) else _before_any(known)
    if (new.study, new.coordinator) != (pinned.study, pinned.coordinator):
        raise RosterRefused(f"this is the roster of {new.study} by {new.coordinator}, not of {pinned.study}")
    key = new.members[new.coordinator]
    if not new.is_signed_by(key) or not _leads_to(new, pinned.members[pinned.coordinator], key):
        raise RosterRefused(f"version {new.version} of the roster is not signed by {pinned.coordinator}")
    if new.version < pinned.version or (new.version == pinned.version and new.digest != pinned.digest):
        raise RosterRefused(f"version {new.version} can't replace version {pinned.version}; ask {pinned.coordinator}")
    both = sorted({*new.members} & {*pinned.members})
    rotated = [name for name in both if new.members[name] != pinned.members[name]]
    for name in rotated:
        if not _leads_to(new, pinned.members[name], new.members[name]):
            raise RotationRefused(
                f"the key of {name} is another, and its old key didn't sign that; "
                f"telephone {name}, and if that is right: spinney site approve-roster --afresh"
            )
    added, removed = sorted({*new.members} - {*pinned.members}), sorted({*pinned.members} - {*new.members})
    return Changes(tuple(added), tuple(removed), tuple(rotated))


def _before_any(invited: Invite) -> Roster:
    """All that a house knows that was invited and has approved nothing."""
    members, before = {invited.coordinator: invited.key}, max(1, invited.version - 1)
    return Roster(study=invited.study, version=before, coordinator=invited.coordinator, members=members)


def _leads_to(roster: Roster, old: str, new: str) -> bool:
    """Whether signed rotations lead from a key to another."""
    after = {step.old: step for step in roster.rotations}
    while old != new:
        step = after.pop(old, None)  # pop: a circle ends
        if step is None or not step.is_signed_by(old):
            return False
        old = step.new
    return True


# ---------------------------------------------------------------------------------------------------------------
# Files

Kind = TypeVar("Kind", bound=SignedDocument)


def read_document(path: Path, kind: type[Kind]) -> Kind:
    """A document from a file."""
    try:
        with path.open("rb") as file:
            return parse_document(file.read(LARGEST + 1), kind, str(path))
    except OSError as error:
        raise RosterRefused(f"{path} cannot be read ({error.strerror})") from None


def parse_document(raw: bytes, kind: type[Kind], what: str) -> Kind:
    """A document from bytes. Its form is checked; who signed it, its reader has to check."""
    if len(raw) > LARGEST:
        raise RosterRefused(f"{what} is larger than {LARGEST} bytes")
    try:
        return _checked(kind, json.loads(raw), what)
    except (ValueError, RecursionError):
        raise RosterRefused(f"{what} is not JSON") from None


def write_document(document: SignedDocument, path: Path) -> None:
    """A document as a file that people can read."""
    write_whole(path, (document.model_dump_json(indent=2) + "\n").encode())


def _checked(kind: type[Kind], plain: object, what: str) -> Kind:
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        places = sorted({".".join(map(str, mistake["loc"])) or mistake["msg"] for mistake in error.errors()})
        raise RosterRefused(f"{what} is no proper {kind.purpose}: {', '.join(places)[:200]}") from None
