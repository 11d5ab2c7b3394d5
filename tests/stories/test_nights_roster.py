"""Nights in which the roster changes: houses go on, and who has left or lost a key has no say any more."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.connectors.exchange import SystemClock
from spinney.demo.federation import COORDINATOR, Village
from spinney.errors import Declined
from spinney.house import encoding as wire
from spinney.house.approvals import Approvals, NotApproved
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.envelopes import MessageId, seal
from spinney.house.joining import change_roster, newest_of, rotated, signing
from spinney.house.keys import Identity, KeyRing
from spinney.house.renewal import LONGEST_WAIT, effective_roster
from spinney.house.roster import Roster, admit, dismiss, invite, join, rotation
from spinney.house.rounds import Opening
from spinney.house.site_night import OpenedRound, SiteNights
from tests.federations import breast_study, breast_village, simulated
from tests.nights import others

SITES = ("ash", "birch", "cedar")


class AWeekAhead(SystemClock):
    """As if it were then."""

    def now(self) -> datetime:
        return super().now() + LONGEST_WAIT


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return breast_village(tmp_path, SITES)


def host(village: Village) -> CoordinatorNights:
    return CoordinatorNights(read_coordinator(village.coordinator_file))


def site(village: Village, name: str) -> SiteNights:
    return SiteNights(read_site(village.site_file(name)))


def publish(village: Village, roster: Roster) -> Roster:
    nights = host(village)
    return change_roster(nights.approvals, nights.exchange, roster, "a test")


def rotate_key(village: Village, name: str) -> tuple[Identity, Identity]:
    """A member's new key is on the roster; old and new."""
    ring = KeyRing(village.home(name))
    old, new = ring.identity(), ring.next_identity()
    made = rotated(host(village).approvals, rotation(old, new))
    assert made is not None
    publish(village, made[1])
    return old, new


def open_round(village: Village, number: int, signer: Identity, roster: Roster) -> None:
    """The opening of a round, and nothing more."""
    nights = host(village)
    opening = Opening(number, nights.study.digest, roster.digest, bytes(32), number)
    sealed = seal(wire.pack(opening), MessageId(nights.study.digest, number, "opening", 1, COORDINATOR), signer)
    path = village.folder / "exchange" / "breast" / COORDINATOR / str(number) / "opening.1"
    path.parent.mkdir(parents=True)
    path.write_bytes(sealed)


def found_by(nights: SiteNights) -> OpenedRound:
    found = nights._open_round(None)
    assert found is not None
    return found


def test_nights_go_on_when_a_site_and_the_coordinator_change_their_keys(village: Village) -> None:
    new = [rotate_key(village, name)[1] for name in ("ash", COORDINATOR)]
    for number in (1, 2):
        with others(village) as running:
            result = running[COORDINATOR].result()
        assert (result["model"], result["absent"]) == (simulated(village, breast_study(), number).model_digest, {})
    for name in ("ash", COORDINATOR):
        site(village, "ash").look_at_roster()
        (left,) = KeyRing(village.home(name)).all().values()
        assert left.public == new[name == COORDINATOR].public


def test_a_key_that_the_coordinator_changes_after_the_night_has_begun_is_followed(village: Village) -> None:
    ash = site(village, "ash")
    ash.look_at_roster()
    _, new = rotate_key(village, COORDINATOR)
    roster = effective_roster(host(village).approvals, host(village).exchange)
    open_round(village, 1, new, roster)
    assert ash._roster(found_by(ash)) == roster


def test_the_coordinator_s_old_key_opens_no_round_any_more(village: Village) -> None:
    before = host(village).approvals.roster
    old, _ = rotate_key(village, COORDINATOR)
    effective_roster(host(village).approvals, host(village).exchange)
    ash = site(village, "ash")
    ash.look_at_roster()
    open_round(village, 1, old, before)
    assert ash._open_round(None) is None
    assert [line.entry.kind for line in ash.audit.lines() if line.entry.direction == "refused"] == ["WrongSignature"]


def test_a_roster_that_is_not_in_force_any_more_is_declined(village: Village) -> None:
    before = host(village).approvals.roster
    publish(village, dismiss(before, "cedar", signing(host(village).approvals)))
    effective_roster(host(village).approvals, host(village).exchange)
    ash = site(village, "ash")
    ash.look_at_roster()
    open_round(village, 1, KeyRing(village.home(COORDINATOR)).identity(), before)
    with pytest.raises(Declined, match="not in force any more"):
        ash._roster(found_by(ash))


def test_a_round_that_was_begun_keeps_its_roster_and_its_keys(village: Village) -> None:
    nights = host(village)
    nights.channel(1, nights.approvals.roster)
    old, new = rotate_key(village, COORDINATOR)
    assert effective_roster(nights.approvals, nights.exchange).keys[COORDINATOR] == old.public
    assert {one.public for one in KeyRing(nights.home).all().values()} == {old.public, new.public}
    nights.rounds.leave(1)
    assert effective_roster(nights.approvals, nights.exchange).keys[COORDINATOR] == new.public
    assert [one.public for one in KeyRing(nights.home).all().values()] == [new.public]


def test_a_site_that_has_not_confirmed_a_newcomer_for_a_week_is_told_so_and_heals_when_the_newcomer_leaves(
    village: Village,
) -> None:
    approvals = host(village).approvals
    key = signing(approvals)
    letter = invite(newest_of(approvals), approvals.study.digest, "elm", "exchange", key)
    publish(village, admit(newest_of(approvals), letter, join(letter, Identity.new()), key))
    later = Approvals(approvals.home, approvals.name, AWeekAhead())
    effective_roster(later, host(village).exchange)
    with pytest.raises(NotApproved, match="spinney site approve-roster"):
        site(village, "ash").look_at_roster()
    publish(village, dismiss(newest_of(approvals), "elm", key))
    effective_roster(approvals, host(village).exchange)
    assert site(village, "ash").look_at_roster()[0].startswith("Version 6 of the roster was accepted without asking")
