"""Rosters over the exchange: newcomers wait for people, rotations and departures don't, and nothing forged counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spinney.connectors.exchange import Address, Exchange
from spinney.house.approvals import Approvals, NotApproved
from spinney.house.audit import Audit
from spinney.house.keys import Identity, KeyRing
from spinney.house.renewal import (
    LONGEST_WAIT,
    ApprovedRoster,
    InForce,
    effective_roster,
    look_afresh,
    look_for_rosters,
    publish_approvals,
    publish_roster,
    renew_roster,
    signer,
)
from spinney.house.roster import Roster, RosterRefused, admit, dismiss, found_roster, invite, join, rotate, rotation

DIGEST = "5" * 64


class HandClock:
    """Time passes when the test says so."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class World:
    """A coordinator, sites, and a folder between them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, HandClock()
        (folder / "exchange").mkdir()
        self.exchange = Exchange.open(str(folder / "exchange"))
        self.oak = self.approvals("oak")
        publish_roster(self.oak, self.exchange, found_roster("wood", "oak", self.ring("oak").create()))
        self.oak.put_in_force(1)

    def approvals(self, house: str) -> Approvals:
        return Approvals(self.folder / house, "wood", self.clock)

    def ring(self, house: str) -> KeyRing:
        return KeyRing(self.folder / house)

    @property
    def newest(self) -> Roster:
        roster = self.oak.newest
        assert roster is not None
        return roster

    @property
    def boss(self) -> Identity:
        return self.ring("oak").identity(listed=self.newest.keys["oak"])

    def publish(self, roster: Roster) -> Roster:
        return publish_roster(self.oak, self.exchange, roster)

    def add(self, site: str) -> Roster:
        letter = invite(self.newest, DIGEST, site, "exchange", self.boss)
        if not self.ring(site).all():
            self.ring(site).create()
        self.approvals(site).keep_invite(letter)
        answer = join(letter, self.ring(site).identity())
        return self.publish(admit(self.newest, letter, answer, self.boss))

    def approve(self, *sites: str) -> None:
        for site in sites:
            _, roster = look_for_rosters(self.approvals(site), self.exchange, site)
            assert roster is not None
            self.approvals(site).approve_roster(roster)
            publish_approvals(self.approvals(site), self.exchange, site)

    def renew(self, site: str) -> list[str]:
        return renew_roster(self.approvals(site), self.exchange, site)

    def effective(self) -> Roster:
        return effective_roster(self.oak, self.exchange)

    def refusals(self, house: str) -> list[str]:
        lines = Audit(self.folder / house / "audit.jsonl").lines()
        return [line.entry.kind for line in lines if line.entry.direction == "refused"]

    def plant(self, sender: str, step: str, version: int, raw: bytes) -> None:
        path = self.folder / "exchange" / str(Address("wood", sender, 0, step, version))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(raw)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def wood(world: World) -> World:
    """With ash and beech, under version 3."""
    world.add("ash")
    world.add("beech")
    world.approve("ash", "beech")
    assert world.effective().version == 3
    for site in ("ash", "beech"):
        assert world.renew(site) == []
        assert world.approvals(site).roster.version == 3
    return world


# ---------------------------------------------------------------------------------------------------------------
# Newcomers


def test_a_newcomer_changes_nothing_until_every_site_has_confirmed_it(wood: World) -> None:
    wood.add("elm")
    assert wood.effective().sites == ["ash", "beech"]
    wood.approve("ash")
    assert wood.effective().sites == ["ash", "beech"]
    wood.approve("beech")
    assert wood.effective().sites == ["ash", "beech", "elm"]


def test_sites_run_under_the_version_that_the_coordinator_runs_under(wood: World) -> None:
    wood.add("elm")
    wood.approve("ash")
    wood.effective()
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 3
    wood.approve("beech")
    wood.effective()
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 4


def test_a_newcomer_is_reported_and_not_accepted_by_the_night(wood: World) -> None:
    wood.add("elm")
    assert wood.renew("ash") == [
        "Version 4 of the roster brings elm; confirm by telephone, then: spinney site approve-roster"
    ]
    assert wood.approvals("ash").approved_versions == [3]


def test_after_a_week_a_newcomer_takes_part_and_who_has_not_approved_sits_out(wood: World) -> None:
    wood.add("elm")
    wood.approve("ash")
    wood.clock.sleep(LONGEST_WAIT.total_seconds() - 1)
    assert wood.effective().version == 3
    wood.clock.sleep(1)
    assert wood.effective().version == 4
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 4
    wood.renew("beech")
    with pytest.raises(NotApproved, match="spinney site approve-roster"):
        _ = wood.approvals("beech").roster
    wood.approve("beech")
    assert wood.approvals("beech").roster.version == 4


def test_of_two_newcomers_neither_waits_for_the_other(wood: World) -> None:
    wood.add("elm")
    wood.add("fir")
    wood.approve("ash", "beech")
    assert wood.effective().sites == ["ash", "beech", "elm", "fir"]


def test_a_house_s_first_roster_is_always_for_people(world: World) -> None:
    world.add("ash")
    notes = world.renew("ash")
    assert "confirm by telephone" in notes[-1]
    assert world.approvals("ash").approved_versions == []


# ---------------------------------------------------------------------------------------------------------------
# Departures and rotations


def test_a_departure_is_accepted_by_the_night_and_waits_for_nobody(wood: World) -> None:
    wood.publish(dismiss(wood.newest, "beech", wood.boss))
    assert wood.effective().sites == ["ash"]
    assert wood.renew("ash") == ["Version 4 of the roster was accepted without asking; gone: beech."]
    assert wood.approvals("ash").roster.sites == ["ash"]
    assert wood.renew("beech")[-1] == "beech is not on the roster of wood any more."
    with pytest.raises(NotApproved, match="not on the roster"):
        signer(wood.approvals("beech"), "beech")


def test_after_a_site_s_rotation_both_sides_go_on_with_the_new_key(wood: World) -> None:
    old, new = wood.ring("ash").identity(), wood.ring("ash").next_identity()
    wood.publish(rotate(wood.newest, rotation(old, new), wood.boss))
    wood.renew("ash")
    assert signer(wood.approvals("ash"), "ash").public == old.public  # not in force yet: the old key still signs
    assert wood.effective().keys["ash"] == new.public
    for site in ("ash", "beech"):
        wood.renew(site)
        assert wood.approvals(site).roster.keys["ash"] == new.public
    assert signer(wood.approvals("ash"), "ash").public == new.public
    assert [one.public for one in wood.ring("ash").all().values()] == [new.public]


def test_after_the_coordinator_s_rotation_both_sides_go_on_with_the_new_key(wood: World) -> None:
    old, new = wood.ring("oak").identity(), wood.ring("oak").next_identity()
    wood.publish(rotate(wood.newest, rotation(old, new), new))
    wood.effective()
    assert [one.public for one in wood.ring("oak").all().values()] == [new.public]
    assert wood.renew("ash") == ["Version 4 of the roster was accepted without asking; with a new key: oak."]
    assert wood.approvals("ash").roster.keys["oak"] == new.public
    wood.add("elm")
    wood.approve("ash", "beech", "elm")
    assert wood.effective().version == 5


def test_an_invite_from_before_the_coordinator_s_rotation_is_still_good(wood: World) -> None:
    letter = invite(wood.newest, DIGEST, "elm", "exchange", wood.boss)
    old, new = wood.ring("oak").identity(), wood.ring("oak").next_identity()
    wood.publish(rotate(wood.newest, rotation(old, new), new))
    wood.effective()
    wood.approvals("elm").keep_invite(letter)
    wood.publish(admit(wood.newest, letter, join(letter, wood.ring("elm").create()), wood.boss))
    wood.approve("elm")
    assert wood.approvals("elm").roster.version == 5


def test_who_is_invited_after_the_coordinator_s_rotation_finds_nothing_to_refuse(wood: World) -> None:
    old, new = wood.ring("oak").identity(), wood.ring("oak").next_identity()
    wood.publish(rotate(wood.newest, rotation(old, new), new))
    wood.effective()
    wood.add("elm")
    wood.approve("elm")
    assert wood.refusals("elm") == []
    assert wood.approvals("elm").roster.version == 5


def test_a_newcomer_is_not_shown_a_roster_from_before_its_invite(wood: World) -> None:
    wood.add("elm")
    with pytest.raises(RosterRefused, match="version 2 can't replace version 2"):
        wood.approvals("elm").approve_roster(wood.oak.approved(2))


def test_a_key_that_another_study_needs_is_not_destroyed(wood: World) -> None:
    old, new = wood.ring("ash").identity(), wood.ring("ash").next_identity()
    other = Approvals(wood.folder / "ash", "meadow", wood.clock)
    letter = invite(found_roster("meadow", "yew", Identity.new()), DIGEST, "ash", "exchange", Identity.new())
    other.keep_invite(letter)
    wood.publish(rotate(wood.newest, rotation(old, new), wood.boss))
    wood.effective()
    wood.renew("ash")
    assert signer(wood.approvals("ash"), "ash").public == new.public
    assert {one.public for one in wood.ring("ash").all().values()} == {old.public, new.public}


def test_a_rotation_behind_a_newcomer_waits_with_it(wood: World) -> None:
    wood.add("elm")
    old, new = wood.ring("ash").identity(), wood.ring("ash").next_identity()
    wood.publish(rotate(wood.newest, rotation(old, new), wood.boss))
    assert wood.effective().keys["ash"] == old.public
    wood.renew("ash")
    assert signer(wood.approvals("ash"), "ash").public == old.public
    wood.approve("ash", "beech")
    assert wood.effective().keys["ash"] == new.public
    wood.renew("ash")
    assert signer(wood.approvals("ash"), "ash").public == new.public


def test_a_house_that_was_away_for_months_finds_every_version(wood: World) -> None:
    for _ in range(3):
        old, new = wood.ring("oak").identity(), wood.ring("oak").next_identity()
        wood.publish(rotate(wood.newest, rotation(old, new), new))
        wood.effective()
    for path in (wood.folder / "exchange/wood/oak/0").glob("roster.*"):
        path.unlink()  # a bucket's own rule may delete what is old
    wood.effective()
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 6


def test_who_lost_its_key_is_dismissed_joins_again_and_is_confirmed_as_a_newcomer(wood: World) -> None:
    wood.publish(dismiss(wood.newest, "beech", wood.boss))
    (wood.folder / "beech/keys/identity.pem").unlink()
    wood.add("beech")
    assert wood.effective().sites == ["ash"]
    assert wood.renew("ash")[-1].startswith("Version 5 of the roster brings beech; confirm by telephone")
    wood.approve("ash", "beech")
    assert wood.effective().sites == ["ash", "beech"]
    wood.renew("beech")
    assert signer(wood.approvals("beech"), "beech").public == wood.ring("beech").identity().public


def test_a_changed_key_that_nobody_signed_can_be_approved_afresh_from_the_invite(wood: World) -> None:
    wood.publish(dismiss(wood.newest, "beech", wood.boss))
    (wood.folder / "beech/keys/identity.pem").unlink()
    wood.add("beech")
    wood.plant("oak", "roster", 4, b"somebody destroyed the version in between")
    assert "telephone beech" in wood.renew("ash")[-1]
    roster = look_afresh(wood.approvals("ash"), wood.exchange, "ash")
    assert roster is not None
    assert wood.approvals("ash").approve_roster(roster, afresh=True).added == ("ash", "beech")
    assert wood.approvals("ash").approved_versions == [3, 5]


# ---------------------------------------------------------------------------------------------------------------
# Hostile


def forged(wood: World) -> dict[str, tuple[bytes, str]]:
    """Things at the place of version 4, and the name of their refusal."""
    puppet = {**wood.newest.members, "elm": Identity.new().public.hex()}
    stolen = {**wood.newest.members, "beech": Identity.new().public.hex()}
    bigger = wood.newest.model_copy(update={"version": 4})
    return {
        "nothing": (b"", "RosterRefused"),
        "noise": (b"\x00\xff" * 500, "RosterRefused"),
        "deep": (b"[" * 100_000, "RosterRefused"),
        "huge": (b" " * 5_000_001, "ObjectTooLarge"),
        "unsigned": (bigger.model_dump_json().encode(), "RosterRefused"),
        "another's": (bigger.signed(Identity.new()).model_dump_json().encode(), "RosterRefused"),
        "a site's": (bigger.signed(wood.ring("beech").identity()).model_dump_json().encode(), "RosterRefused"),
        "rolled back": (wood.oak.approved(2).model_dump_json().encode(), "RosterRefused"),
        "moved": (wood.newest.model_dump_json().encode(), "RosterRefused"),
        "puppet": (bigger.model_copy(update={"members": puppet}).model_dump_json().encode(), "RosterRefused"),
        "key": (
            bigger.model_copy(update={"members": stolen}).signed(wood.boss).model_dump_json().encode(),
            "RotationRefused",
        ),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "nothing",
        "noise",
        "deep",
        "huge",
        "unsigned",
        "another's",
        "a site's",
        "rolled back",
        "moved",
        "puppet",
        "key",
    ],
)
def test_what_is_no_new_roster_is_noted_and_stops_nothing(wood: World, kind: str) -> None:
    raw, refusal = forged(wood)[kind]
    wood.plant("oak", "roster", 4, raw)
    notes = wood.renew("ash")
    assert len(notes) == 1
    assert notes[0].startswith("Refused: ")
    assert wood.refusals("ash") == [refusal]
    assert wood.approvals("ash").roster.version == 3
    assert wood.publish(dismiss(wood.newest, "beech", wood.boss)).version == 5
    assert wood.effective().version == 5
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 5


def test_a_roster_that_lists_a_foreign_key_for_this_house_is_refused(world: World) -> None:
    world.add("ash")
    members = {**world.newest.members, "ash": Identity.new().public.hex()}
    puppet = world.newest.model_copy(update={"members": members}).signed(world.boss)
    world.plant("oak", "roster", 2, puppet.model_dump_json().encode())
    notes, pending = look_for_rosters(world.approvals("ash"), world.exchange, "ash")
    assert notes == ["Refused: version 2 of the roster lists a key for ash that this house doesn't have"]
    assert pending is None
    assert world.refusals("ash") == ["RosterRefused"]


@pytest.mark.parametrize("kind", ["unsigned", "by another", "for another roster", "noise", "huge"])
def test_a_forged_approval_does_not_count(wood: World, kind: str) -> None:
    wood.add("elm")
    wood.approve("ash")
    note = ApprovedRoster(study="wood", site="beech", version=4, roster=wood.newest.digest)
    beech = wood.ring("beech").identity()
    raw = {
        "unsigned": note.model_dump_json().encode(),
        "by another": note.signed(wood.ring("ash").identity()).model_dump_json().encode(),
        "for another roster": note.model_copy(update={"roster": DIGEST}).signed(beech).model_dump_json().encode(),
        "noise": b"\x00",
        "huge": b" " * 10_001,
    }[kind]
    wood.plant("beech", "approved-roster", 4, raw)
    assert wood.effective().version == 3
    assert wood.refusals("oak") == ["ObjectTooLarge" if kind == "huge" else "RosterRefused"]
    wood.approve("beech")  # the site is told about the second copy, and goes on
    assert wood.refusals("beech") == ["SecondCopy"]


def test_nobody_but_the_coordinator_puts_a_roster_in_force(wood: World) -> None:
    wood.add("elm")
    wood.approve("ash")
    note = InForce(study="wood", version=4, roster=wood.newest.digest).signed(wood.ring("beech").identity())
    wood.plant("oak", "in-force", 4, note.model_dump_json().encode())
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 3
    assert wood.refusals("ash") == ["RosterRefused"]


def test_two_rosters_of_one_version_are_noticed(wood: World) -> None:
    wood.add("elm")
    wood.approve("ash")
    note = InForce(study="wood", version=4, roster=DIGEST).signed(wood.boss)
    wood.plant("oak", "in-force", 4, note.model_dump_json().encode())
    wood.renew("ash")
    assert wood.approvals("ash").version_in_force == 3
    assert wood.refusals("ash") == ["RosterRefused"]


def test_what_is_in_force_is_never_rolled_back(wood: World) -> None:
    wood.publish(dismiss(wood.newest, "beech", wood.boss))
    wood.effective()
    wood.renew("ash")
    wood.clock.sleep(1)
    (wood.folder / "exchange/wood/oak/0/in-force.4").unlink()
    (wood.folder / "exchange/wood/oak/0/roster.4").unlink()
    wood.renew("ash")
    assert wood.approvals("ash").roster.version == 4


def test_an_exchange_that_is_away_stops_no_night(wood: World) -> None:
    (wood.folder / "exchange").rename(wood.folder / "away")
    (note,) = wood.renew("ash")
    assert note.startswith("The roster stays as it is: ")
    assert wood.approvals("ash").roster.version == 3


def test_what_was_sent_and_accepted_is_in_the_audit_log(wood: World) -> None:
    wood.publish(dismiss(wood.newest, "beech", wood.boss))
    wood.effective()
    wood.renew("ash")
    words = [line.entry.words for line in wood.approvals("ash").audit.lines()]
    assert words[-2:] == [
        "Version 4 of the roster was accepted without asking; gone: beech.",
        "Sent to everybody: that this house has accepted a list of the houses.",
    ]
