"""Who joins and who leaves, step by step: what the coordinator's and the sites' people decide, and what follows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from spinney.configuration.study_file import read_study
from spinney.connectors.exchange import Exchange
from spinney.connectors.exchange.address import check_name
from spinney.errors import SpinneyError
from spinney.house import roster as documents
from spinney.house.approvals import Approvals, NotApproved, decided, known_in
from spinney.house.keys import Identity, KeyRing
from spinney.house.renewal import key_in_use, publish_roster
from spinney.house.roster import Invite, Joining, Roster, RosterRefused, Rotation, RotationRefused
from spinney.storage.private import private_folder
from spinney.study.study import Study


class CannotJoin(SpinneyError):
    """An invite and this house don't fit together; the message says what to do."""


# ---------------------------------------------------------------------------------------------------------------
# The coordinator's side


def found_study(approvals: Approvals, exchange: Exchange, me: str, file: Path, by: str = "") -> Study:
    """Pin the study, and found its roster if there is none."""
    study = approvals.approve_study(file, by)
    if approvals.newest is None:
        publish_roster(approvals, exchange, documents.found_roster(study.name, me, KeyRing(approvals.home).identity()))
        approvals.put_in_force(1)
    return study


def write_invite(approvals: Approvals, site: str, url: str) -> Invite:
    """An invite with the study in it. A copy stays here, to compare the answer with."""
    roster, study = newest_of(approvals), approvals.study
    if check_name(site) == roster.coordinator:
        raise CannotJoin(f"{site} is the coordinator itself; a site needs a name of its own")
    text = (approvals.folder / "study.yaml").read_text(encoding="utf-8-sig")
    invited = documents.invite(roster, study.digest, site, url, signing(approvals), text)
    documents.write_document(invited, _invites(approvals) / f"{site}.json")
    approvals.note("noted", "Invite", f"An invite for {site} was written.", peer=site, digest=invited.digest)
    return invited


def admitted(approvals: Approvals, joining: Joining) -> Roster:
    """The roster that an answer would make; RosterRefused if it doesn't answer an invite of ours."""
    path = _invites(approvals) / f"{joining.site}.json"
    if not path.exists():
        raise RosterRefused(f"{joining.site} was not invited to {approvals.name}; run: spinney coordinator invite SITE")
    return documents.admit(newest_of(approvals), documents.read_document(path, Invite), joining, signing(approvals))


def change_roster(approvals: Approvals, exchange: Exchange, roster: Roster, what: str, by: str = "") -> Roster:
    """Publish the next version, and write down who decided that."""
    published = publish_roster(approvals, exchange, roster)
    words = f"{decided(by)}: {what}; version {published.version} of the roster."
    approvals.note("decided", "RosterChange", words, peer=by, digest=published.digest)
    return published


def rotated(approvals: Approvals, rotation: Rotation) -> tuple[str, Roster] | None:
    """Whose key it is and the next roster, or None if nobody's in this study."""
    roster = newest_of(approvals)
    owner = next((name for name, key in roster.members.items() if key == rotation.old), None)
    if owner is None:
        return None
    ring = KeyRing(approvals.home)
    key = rotation.new if owner == roster.coordinator else roster.members[roster.coordinator]
    return owner, documents.rotate(roster, rotation, ring.identity(listed=bytes.fromhex(key)))


def rotated_everywhere(home: Path, rotation: Rotation) -> dict[str, tuple[str, Roster]]:
    """Every study of this coordinator whose roster lists the key that a house replaces, with the new roster."""
    found = {study: rotated(Approvals(home, study), rotation) for study in known_in(home)}
    hits = {study: one for study, one in found.items() if one is not None}
    if not hits:
        raise RotationRefused("the key that was replaced is nobody's in any roster here; is it admitted already?")
    return hits


def newest_of(approvals: Approvals) -> Roster:
    """The roster that the next change follows."""
    roster = approvals.newest
    if roster is None:
        raise NotApproved(f"{approvals.name} has no roster here; run: spinney coordinator approve STUDY")
    return roster


def signing(approvals: Approvals) -> Identity:
    """The coordinator's key for its newest roster."""
    roster = newest_of(approvals)
    return KeyRing(approvals.home).identity(listed=roster.keys[roster.coordinator])


def _invites(approvals: Approvals) -> Path:
    return private_folder(approvals.folder / "invites")


# ---------------------------------------------------------------------------------------------------------------
# The site's side


def answer_invite(home: Path, name: str, invited: Invite) -> Joining:
    """Check the invite, make this house's key if there is none, pin the coordinator's, and answer."""
    documents.check_invite(invited)
    if invited.site != name:
        raise CannotJoin(
            f"the invite is for {invited.site}, and site.yaml says that this is {name}; change one of them"
        )
    approvals = Approvals(home, invited.study)
    _same_coordinator(approvals, invited)
    if invited.text:
        _check_text(invited)
    joining = documents.join(invited, key_in_use(home) if KeyRing(home).all() else KeyRing(home).create())
    approvals.keep_invite(invited)
    words = f"Joined {invited.study} of {invited.coordinator}; its key is pinned."
    approvals.note("noted", "Joining", words, peer=invited.coordinator, digest=joining.digest)
    return joining


def _same_coordinator(approvals: Approvals, invited: Invite) -> None:
    """A second invite must not replace the coordinator that this house knows."""
    before, roster = approvals.invite, approvals.newest
    known = {roster.members[roster.coordinator]} if roster else {before.key} if before else {invited.key}
    if invited.key not in known:
        raise CannotJoin(
            f"this house knows {invited.coordinator} of {invited.study} by another key; telephone, and if the new one "
            f"is right, move {approvals.folder} away and join again"
        )


def _check_text(invited: Invite) -> None:
    """What does not fit the signed digest is not kept."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "study.yaml"
        file.write_text(invited.text, encoding="utf-8")
        study = read_study(file)
    if (study.name, study.digest) != (invited.study, invited.study_digest):
        raise CannotJoin("the study in the invite has another digest here; do both houses run the same Spinney?")
