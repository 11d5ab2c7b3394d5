"""The papers of a study in one house: what people here have approved, and nothing else counts.

    studies/<study>/study.yaml      the approved text; approval.json pins its digest
    studies/<study>/invite.json     whose study it is (sites only); proposed.yaml is the study that came with it
    studies/<study>/rosters/<n>.json   every approved roster; in-force.json says under which version rounds run

Every decision is a line in the audit log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from spinney.base import Settings, is_file_name
from spinney.configuration.study_file import read_study
from spinney.connectors.exchange import Clock, SystemClock
from spinney.connectors.exchange.address import check_name
from spinney.errors import SpinneyError, StudyInvalid
from spinney.house.audit import Audit, AuditEntry
from spinney.house.roster import Changes, Digest, Invite, Roster, RosterRefused, accept, read_document, write_document
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder
from spinney.study.study import Study


class NotApproved(SpinneyError):
    """Nobody in this house has approved this; the message says what to run."""


class Approval(Settings):
    """What was approved: the digest that counts, and the settings, so that a change can be shown later."""

    digest: Digest
    time: str
    by: str
    settings: Mapping[str, Any] = Field(repr=False)


class Approvals:
    """The papers of one study in one house."""

    def __init__(self, home: Path, study: str, clock: Clock | None = None) -> None:
        self.home, self.name = home, check_name(study)
        self.folder = home / "studies" / self.name
        self.audit, self.clock = Audit(home / "audit.jsonl"), clock or SystemClock()

    # -----------------------------------------------------------------------------------------------------------
    # The study

    @property
    def study(self) -> Study:
        """The approved study; NotApproved if there is none, or if its text is not what was approved."""
        pinned = self.approval
        if pinned is None:
            raise NotApproved(f"{self.name} is not approved here; read it, then: spinney site approve STUDY")
        try:
            study = read_study(self.folder / "study.yaml")
        except StudyInvalid:
            study = None
        if study is None or study.digest != pinned.digest:
            raise NotApproved(
                f"{self.folder / 'study.yaml'} is not the study that was approved on {pinned.time[:10]}; "
                "look at what has changed, then: spinney site approve STUDY"
            )
        return study

    @property
    def approval(self) -> Approval | None:
        """What was approved last."""
        path = self.folder / "approval.json"
        try:
            return Approval.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            raise NotApproved(f"{path} is damaged; approve the study again: spinney site approve STUDY") from None

    def approve_study(self, path: Path, by: str = "") -> Study:
        """Keep a copy of the text and pin its digest."""
        study = read_study(path)
        if study.name != self.name:
            raise NotApproved(f"{path} is the study {study.name}, not {self.name}")
        private_folder(self.folder)
        write_whole(self.folder / "study.yaml", path.read_bytes())
        now = self.clock.now().isoformat(timespec="seconds")
        pinned = Approval(digest=study.digest, time=now, by=by, settings=study.model_dump(mode="json"))
        write_whole(self.folder / "approval.json", (pinned.model_dump_json(indent=2) + "\n").encode())
        words = f"version {study.version} of the study may run here, digest {study.digest[:16]}"
        self.note("decided", "StudyApproval", f"{decided(by)}: {words}.", peer=by, digest=study.digest)
        return self.study

    # -----------------------------------------------------------------------------------------------------------
    # The invite

    @property
    def invite(self) -> Invite | None:
        """By whom this house was invited; the coordinator itself was not."""
        path = self.folder / "invite.json"
        return read_document(path, Invite) if path.exists() else None

    def keep_invite(self, invite: Invite) -> None:
        """From now on only this coordinator's rosters count."""
        private_folder(self.folder)
        write_document(invite, self.folder / "invite.json")
        if invite.text:
            write_whole(self.proposed, invite.text.encode())

    @property
    def proposed(self) -> Path:
        """The study as it came with the invite; nobody has to have approved it."""
        return self.folder / "proposed.yaml"

    # -----------------------------------------------------------------------------------------------------------
    # Rosters

    @property
    def roster(self) -> Roster:
        """The one that rounds run under, if this house has approved it; otherwise NotApproved.

        Where a version in between was left out, the next that was approved serves: it knows everybody's key.
        """
        approved, in_force = self.approved_versions, self.version_in_force
        if not approved:
            raise NotApproved(f"no roster of {self.name} is approved here; run: spinney site approve-roster")
        if in_force > approved[-1]:
            raise NotApproved(
                f"version {in_force} of the roster of {self.name} is in force, and this house has approved version "
                f"{approved[-1]}; run: spinney site approve-roster"
            )
        return self.approved(min(version for version in approved if version >= in_force) if in_force else approved[-1])

    @property
    def newest(self) -> Roster | None:
        """The newest roster that is approved here, whether or not it is in force."""
        versions = self.approved_versions
        return self.approved(versions[-1]) if versions else None

    @property
    def coordinator(self) -> str:
        """Whose rosters count."""
        known = self.newest or self.invite
        if known is None:
            raise NotApproved(f"this house knows no coordinator of {self.name}; first: spinney site join INVITE")
        return known.coordinator

    @property
    def approved_versions(self) -> list[int]:
        """All that this house has ever approved, the newest last."""
        return sorted(int(path.stem) for path in (self.folder / "rosters").glob("[1-9]*.json"))

    def approved(self, version: int) -> Roster:
        """One of them."""
        return read_document(self.folder / "rosters" / f"{version}.json", Roster)

    def roster_of(self, digest: str) -> Roster:
        """The approved roster with this digest: a round runs with one roster at all houses."""
        for version in reversed(self.approved_versions):
            roster = self.approved(version)
            if roster.digest == digest:
                return roster
        raise NotApproved(
            f"the round of {self.name} runs with a roster that nobody here has approved; "
            "run: spinney site approve-roster"
        )

    def changes(self, roster: Roster, *, afresh: bool = False) -> Changes:
        """What a roster would change here; RosterRefused if it may not follow what this house knows.

        Afresh: compared with the invite alone, after a telephone call about a lost key.
        """
        known = self.invite if afresh else self.newest or self.invite
        if known is not None:
            return accept(roster, known)
        if roster.study != self.name or not roster.is_signed_by(roster.members[roster.coordinator]):
            raise RosterRefused(f"this is no roster of {self.name} that its coordinator signed")
        return Changes(tuple(sorted(roster.members)), (), ())

    def approve_roster(self, roster: Roster, by: str = "", *, afresh: bool = False) -> Changes:
        """Somebody has confirmed these names and keys."""
        changes = self.changes(roster, afresh=afresh)
        self.keep_roster(roster)
        words = f"{decided(by)}: version {roster.version} of the roster is confirmed; {changes.in_words()}."
        self.note("decided", "RosterApproval", words, peer=by, digest=roster.digest)
        return changes

    def keep_roster(self, roster: Roster) -> None:
        """As approved."""
        folder = private_folder(private_folder(self.folder) / "rosters")
        write_document(roster, folder / f"{roster.version}.json")

    @property
    def version_in_force(self) -> int:
        """The version that rounds run under, as far as this house has heard; 0: nothing yet."""
        try:
            return int(json.loads((self.folder / "in-force.json").read_bytes())["version"])
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError):
            raise NotApproved(f"{self.folder / 'in-force.json'} is damaged; delete it, the exchange tells it") from None

    def put_in_force(self, version: int) -> None:
        """Never back to an older one."""
        if version > self.version_in_force:
            private_folder(self.folder)
            write_whole(self.folder / "in-force.json", json.dumps({"version": version}).encode())

    def note(self, direction: str, kind: str, words: str, *, peer: str = "", digest: str = "", size: int = 0) -> None:
        """A line in the audit log; without words, the usual sentence."""
        facts = {"direction": direction, "kind": kind, "words": words, "peer": peer, "digest": digest, "bytes": size}
        self.audit.append(AuditEntry.model_validate({**facts, "study": self.name}), self.clock.now())


def approved_studies(home: Path) -> list[str]:
    """The studies that this house has approved."""
    return sorted(path.parent.name for path in (home / "studies").glob("*/approval.json"))


def known_in(home: Path) -> list[str]:
    """The studies that this house has papers of, approved or not."""
    return sorted(path.name for path in (home / "studies").glob("*/") if is_file_name(path.name))


def the_study(home: Path) -> str:
    """The study of a house that has one; with several, somebody has to say which."""
    names = approved_studies(home)
    if len(names) != 1:
        known = f"the studies here are {', '.join(names)}: name one" if names else "no study is approved here"
        raise NotApproved(f"{known}; to approve one: spinney site approve STUDY, or spinney coordinator approve STUDY")
    return names[0]


def decided(by: str) -> str:
    """How a decision begins in the audit log."""
    return f"Decided by {by}" if by else "Decided"
