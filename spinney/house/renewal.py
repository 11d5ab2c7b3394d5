"""Rosters over the exchange: the coordinator publishes them, sites answer which they have approved.

    <study>/<coordinator>/0/roster.<version>           a roster, signed by the coordinator
    <study>/<site>/0/approved-roster.<version>         "people here have confirmed it", signed by the site
    <study>/<coordinator>/0/in-force.<version>         "rounds run under it from now on", signed by the coordinator

A roster with a newcomer comes into force when every site that takes part today has approved it, or after a week: adding
a hospital changes nothing for the others until they have confirmed it. Departures and rotations need nobody's approval.
Versions are asked for by name, one after the other, so that planted objects hide nothing; what is forged, oversized or
rolled back is noted and left alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from spinney.base import Name
from spinney.connectors.exchange import Address, Exchange, ExchangeError, SecondCopy
from spinney.errors import Refused
from spinney.house.approvals import Approvals, NotApproved, known_in
from spinney.house.envelopes import Rounds
from spinney.house.keys import Identity, KeyRing
from spinney.house.roster import (
    LARGEST,
    Digest,
    Kind,
    Roster,
    RosterRefused,
    RotationRefused,
    SignedDocument,
    accept,
    parse_document,
)
from spinney.storage.files import write_whole

LONGEST_WAIT = timedelta(days=7)
LARGEST_NOTE = 10_000
MOST_VERSIONS = 1000
ROSTER, APPROVED, IN_FORCE = "roster", "approved-roster", "in-force"


class ApprovedRoster(SignedDocument):
    """A site says which roster people there have confirmed."""

    purpose: ClassVar[str] = "approved roster"
    study: Name
    site: Name
    version: int = Field(ge=1)
    roster: Digest


class InForce(SignedDocument):
    """The coordinator says under which roster rounds run."""

    purpose: ClassVar[str] = "roster in force"
    study: Name
    version: int = Field(ge=1)
    roster: Digest


# ---------------------------------------------------------------------------------------------------------------
# The coordinator's side


def publish_roster(approvals: Approvals, exchange: Exchange, roster: Roster) -> Roster:
    """Put a roster where all can read it. Where somebody has planted another, it goes out under the next version."""
    identity = KeyRing(approvals.home).identity(listed=roster.keys[roster.coordinator])
    while True:
        try:
            exchange.put(_address(approvals, roster.coordinator, ROSTER, roster.version), _raw(roster))
            break
        except SecondCopy as reason:
            _refuse(approvals, roster.coordinator, reason)
            roster = roster.model_copy(update={"version": roster.version + 1}).signed(identity)
    if roster.version not in approvals.approved_versions:
        _remember_time(approvals, roster.version)
        approvals.keep_roster(roster)
        _note_sent(approvals, "Roster", roster)
    return roster


def effective_roster(approvals: Approvals, exchange: Exchange) -> Roster:
    """The roster for the next round; if it is a new one, all are told so. Renews what is gone from the exchange."""
    current = approvals.roster
    _publish_again(approvals, exchange, current.coordinator)
    newer = [] if _in_a_round(approvals) else [one for one in approvals.approved_versions if one > current.version]
    for version in reversed(newer):
        candidate = approvals.approved(version)
        if not waiting_for(approvals, exchange, candidate) or _is_old(approvals, version):
            current = candidate
            break
    _announce(approvals, exchange, current)
    approvals.put_in_force(current.version)
    settle_keys(approvals)
    return current


def waiting_for(approvals: Approvals, exchange: Exchange, candidate: Roster) -> list[str]:
    """The sites that take part today and stay, and have not approved this roster though it takes their approval."""
    current = approvals.roster
    try:
        if not accept(candidate, current).need_approval:
            return []
    except RotationRefused:
        pass  # somebody came back with another key, which is for people to confirm, too
    staying = [site for site in current.sites if site in candidate.members]
    return [site for site in staying if not has_approved(approvals, exchange, candidate, site)]


def has_approved(approvals: Approvals, exchange: Exchange, roster: Roster, site: str) -> bool:
    """Whether a site has signed that it approved exactly this roster; what is forged is noted and doesn't count."""
    try:
        note = _fetch(exchange, _address(approvals, site, APPROVED, roster.version), ApprovedRoster, LARGEST_NOTE)
        if note is None:
            return False
        if not note.is_signed_by(roster.members[site]):
            raise RosterRefused(f"the approval of version {roster.version} is not signed by {site}")
        if (note.study, note.site, note.version, note.roster) != (approvals.name, site, roster.version, roster.digest):
            raise RosterRefused(f"{site} has approved another roster than version {roster.version} that was sent to it")
    except Refused as reason:
        _refuse(approvals, site, reason)
        return False
    return True


def _publish_again(approvals: Approvals, exchange: Exchange, coordinator: str) -> None:
    """What a store or somebody has deleted; a house may have been away for months."""
    at = {_address(approvals, coordinator, ROSTER, version): version for version in approvals.approved_versions}
    for address in exchange.wait(at, timedelta(0), approvals.clock).missing:
        exchange.put(address, _raw(approvals.approved(at[address])))
    publish_roster(approvals, exchange, approvals.approved(approvals.approved_versions[-1]))


def _announce(approvals: Approvals, exchange: Exchange, roster: Roster) -> None:
    identity = KeyRing(approvals.home).identity(listed=roster.keys[roster.coordinator])
    note = InForce(study=approvals.name, version=roster.version, roster=roster.digest).signed(identity)
    address = _address(approvals, roster.coordinator, IN_FORCE, roster.version)
    try:
        exchange.put(address, _raw(note))
    except SecondCopy as reason:
        _refuse(approvals, roster.coordinator, reason)
    if roster.version > approvals.version_in_force:
        _note_sent(approvals, "InForce", note)


def _remember_time(approvals: Approvals, version: int) -> None:
    times = {**_times(approvals), str(version): approvals.clock.now().isoformat()}
    approvals.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(approvals.folder / "published.json", json.dumps(times).encode())


def _times(approvals: Approvals) -> dict[str, str]:
    path = approvals.folder / "published.json"
    times: dict[str, str] = json.loads(path.read_bytes()) if path.exists() else {}
    return times


def _is_old(approvals: Approvals, version: int) -> bool:
    time = _times(approvals).get(str(version))
    return time is not None and approvals.clock.now() - datetime.fromisoformat(time) >= LONGEST_WAIT


# ---------------------------------------------------------------------------------------------------------------
# The site's side


def renew_roster(approvals: Approvals, exchange: Exchange, me: str) -> list[str]:
    """Look for newer rosters, and accept what needs no person; what people should know. Nothing in here stops a night.

    Call it when the night begins, and again when a round has opened: the coordinator says what is in force before.
    """
    notes, pending = look_for_rosters(approvals, exchange, me)
    if pending is not None:
        newcomers = ", ".join(approvals.changes(pending).added)
        notes.append(
            f"Version {pending.version} of the roster brings {newcomers}; confirm by telephone, then: "
            "spinney site approve-roster"
        )
    return notes


def look_for_rosters(approvals: Approvals, exchange: Exchange, me: str) -> tuple[list[str], Roster | None]:
    """What was accepted by itself, and the newest roster that people have to look at."""
    notes: list[str] = []
    offered: list[Roster] = []
    try:
        for roster in _offered(approvals, exchange, me, notes):
            offered.append(roster)
            _accept_if_nobody_is_new(approvals, roster, notes)
        _learn_what_is_in_force(approvals, exchange, offered)
        publish_approvals(approvals, exchange, me)
    except ExchangeError as reason:
        notes.append(f"The roster stays as it is: {reason}")
    newest = approvals.newest
    if newest is not None and me not in newest.members:
        notes.append(f"{me} is not on the roster of {approvals.name} any more.")
    settle_keys(approvals)
    pending = [roster for roster in offered if newest is None or roster.version > newest.version]
    return notes, pending[-1] if pending else None


def look_afresh(approvals: Approvals, exchange: Exchange, me: str) -> Roster | None:
    """The newest roster that follows from the invite, whatever was approved since."""
    found = list(_offered(approvals, exchange, me, [], afresh=True))
    return found[-1] if found else None


def publish_approvals(approvals: Approvals, exchange: Exchange, me: str) -> None:
    """Say which rosters are approved here, from the one in force on."""
    ring = KeyRing(approvals.home)
    own = {identity.public for identity in ring.all().values()}
    for version in approvals.approved_versions:
        roster = approvals.approved(version)
        if version < approvals.version_in_force or roster.keys.get(me) not in own:
            continue
        note = ApprovedRoster(study=approvals.name, site=me, version=version, roster=roster.digest)
        note = note.signed(ring.identity(listed=roster.keys[me]))
        address = _address(approvals, me, APPROVED, version)
        if exchange.wait([address], timedelta(0), approvals.clock).missing:
            _note_sent(approvals, "ApprovedRoster", note)
        try:
            exchange.put(address, _raw(note))
        except SecondCopy as reason:
            _refuse(approvals, me, reason)


def _offered(
    approvals: Approvals, exchange: Exchange, me: str, notes: list[str], *, afresh: bool = False
) -> Iterator[Roster]:
    """Newer rosters that may follow, the oldest first; whoever takes them may approve them on the way."""
    coordinator, start = approvals.coordinator, _first_of_interest(approvals)
    own = {identity.public for identity in KeyRing(approvals.home).all().values()}
    for version in range(start, start + MOST_VERSIONS):
        try:
            roster = _fetch(exchange, _address(approvals, coordinator, ROSTER, version), Roster, LARGEST)
            if roster is None:
                return
            approvals.changes(roster, afresh=afresh)
            if roster.version != version:
                raise RosterRefused(f"version {roster.version} of the roster lies where version {version} should")
            if roster.keys.get(me, b"") not in {b"", *own}:
                raise RosterRefused(
                    f"version {version} of the roster lists a key for {me} that this house doesn't have"
                )
        except Refused as reason:
            _refuse(approvals, coordinator, reason)
            notes.append(f"Refused: {reason}")
        else:
            yield roster


def _accept_if_nobody_is_new(approvals: Approvals, roster: Roster, notes: list[str]) -> None:
    """A house's first roster is always for people."""
    changes = approvals.changes(roster)
    if approvals.newest is None or changes.need_approval:
        return
    approvals.keep_roster(roster)
    words = f"Version {roster.version} of the roster was accepted without asking; {changes.in_words()}."
    approvals.note("noted", "RosterAccepted", words, peer=roster.coordinator, digest=roster.digest)
    notes.append(words)


def _learn_what_is_in_force(approvals: Approvals, exchange: Exchange, offered: list[Roster]) -> None:
    """The newest version that the coordinator says so of; also one that this house has yet to approve."""
    known = {version: approvals.approved(version) for version in approvals.approved_versions}
    known |= {roster.version: roster for roster in offered}
    keys = {roster.members[roster.coordinator] for roster in known.values()}
    for version in range(max(known, default=0), approvals.version_in_force, -1):
        coordinator = approvals.coordinator
        try:
            note = _fetch(exchange, _address(approvals, coordinator, IN_FORCE, version), InForce, LARGEST_NOTE)
            if note is None:
                continue
            if (note.study, note.version) != (approvals.name, version) or not any(map(note.is_signed_by, keys)):
                raise RosterRefused(f"that version {version} is in force is not signed by {coordinator}")
            if version in known and note.roster != known[version].digest:
                raise RosterRefused(f"another version {version} of the roster is in force; telephone {coordinator}")
        except Refused as reason:
            _refuse(approvals, coordinator, reason)
            continue
        approvals.put_in_force(version)
        return


def _first_of_interest(approvals: Approvals) -> int:
    """The version after the one that is approved; for a newcomer, none from before its invite."""
    if approvals.approved_versions:
        return approvals.approved_versions[-1] + 1
    return max(2, approvals.invite.version) if approvals.invite else 1  # the first lists nobody but the coordinator


# ---------------------------------------------------------------------------------------------------------------
# Both sides


def settle_keys(approvals: Approvals) -> None:
    """Destroy this house's old key once no study here needs it any more."""
    needed: set[bytes] = set()
    for study in (Approvals(approvals.home, name) for name in known_in(approvals.home)):
        versions = [version for version in study.approved_versions if version >= study.version_in_force]
        if not versions or _in_a_round(study):
            return  # joined with the old key and not listed yet, or in a round that was begun with it
        needed |= {key for version in versions for key in study.approved(version).keys.values()}
    KeyRing(approvals.home).retire_old(needed)


def _in_a_round(approvals: Approvals) -> bool:
    """A round that was begun goes on with the roster and the keys that it was begun with, also after a restart."""
    return Rounds(approvals.home, approvals.name, "").unfinished is not None


def key_in_use(home: Path) -> Identity:
    """The key that a roster lists, where this house has several; or else its first."""
    ring = KeyRing(home)
    newest = [Approvals(home, study).newest for study in known_in(home)]
    listed = {key for roster in newest if roster is not None for key in roster.keys.values()}
    return next((one for one in ring.all().values() if one.public in listed), None) or ring.identity()


def signer(approvals: Approvals, me: str) -> Identity:
    """The key that this house signs with under the roster in force."""
    roster = approvals.roster
    if me not in roster.members:
        raise NotApproved(f"{me} is not on the roster of {approvals.name}; ask {roster.coordinator}")
    return KeyRing(approvals.home).identity(listed=roster.keys[me])


def _address(approvals: Approvals, sender: str, step: str, version: int) -> Address:
    return Address(approvals.name, sender, 0, step, version)


def _raw(document: SignedDocument) -> bytes:
    return document.model_dump_json().encode()


def _fetch(exchange: Exchange, address: Address, kind: type[Kind], limit: int) -> Kind | None:
    raw = exchange.get(address, limit)
    return None if raw is None else parse_document(raw, kind, str(address))


def _refuse(approvals: Approvals, peer: str, reason: Refused) -> None:
    approvals.note("refused", type(reason).__name__, str(reason), peer=peer)


def _note_sent(approvals: Approvals, kind: str, document: SignedDocument) -> None:
    raw = _raw(document)
    approvals.note("sent", kind, "", digest=hashlib.sha256(raw).hexdigest(), size=len(raw))
