"""Joining, leaving and changing keys: what is accepted, and what a person has to confirm."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from spinney.house import envelopes as security
from spinney.house.envelopes import MessageId, WrongSignature, seal
from spinney.house.keys import Identity, fingerprint
from spinney.house.roster import (
    Changes,
    Invite,
    Joining,
    Roster,
    RosterRefused,
    Rotation,
    RotationRefused,
    accept,
    admit,
    dismiss,
    found_roster,
    invite,
    join,
    parse_document,
    read_document,
    rotate,
    rotation,
    write_document,
)

DIGEST = "5" * 64
COORDINATOR, ASH, BEECH = Identity.new(), Identity.new(), Identity.new()


def invited(site: str, roster: Roster, by: Identity = COORDINATOR) -> Invite:
    return invite(roster, DIGEST, site, "file:exchange", by)


def joined(roster: Roster, site: str, identity: Identity, by: Identity = COORDINATOR) -> Roster:
    letter = invited(site, roster, by)
    return admit(roster, letter, join(letter, identity), by)


FIRST = found_roster("wood", "oak", COORDINATOR)
WITH_ASH = joined(FIRST, "ash", ASH)
BOTH = joined(WITH_ASH, "beech", BEECH)


# ---------------------------------------------------------------------------------------------------------------
# Joining


def test_a_hospital_joins_with_an_invite_and_an_answer() -> None:
    assert BOTH.version == 3
    assert BOTH.sites == ["ash", "beech"]
    assert BOTH.keys == {"ash": ASH.public, "beech": BEECH.public, "oak": COORDINATOR.public}
    assert BOTH.is_signed_by(COORDINATOR.public.hex())


def test_every_member_has_a_fingerprint_for_the_telephone() -> None:
    assert BOTH.fingerprints["ash"] == fingerprint(ASH.public)


def test_two_houses_have_the_same_roster_only_if_every_word_is_the_same() -> None:
    other_order = Roster.model_validate({**BOTH.model_dump(), "members": dict(reversed(BOTH.members.items()))})
    assert other_order.digest == BOTH.digest
    assert other_order.fingerprint == BOTH.fingerprint
    puppet = Roster.model_validate({**BOTH.model_dump(), "members": {**BOTH.members, "ash": "0" * 64}})
    assert puppet.digest != BOTH.digest
    assert puppet.fingerprint != BOTH.fingerprint


def test_an_invite_that_was_changed_on_the_way_is_refused() -> None:
    elsewhere = invited("ash", FIRST).model_copy(update={"exchange": "s3://mallory"})
    with pytest.raises(RosterRefused, match="changed on the way"):
        join(elsewhere, ASH)


def test_an_answer_with_a_key_that_its_sender_does_not_have_is_refused() -> None:
    letter = invited("elm", FIRST)
    stolen = join(letter, Identity.new()).model_copy(update={"key": BEECH.public.hex()})
    with pytest.raises(RosterRefused, match="did not sign"):
        admit(FIRST, letter, stolen, COORDINATOR)


def test_an_answer_to_the_invite_of_another_is_refused() -> None:
    letter = invited("elm", FIRST)
    with pytest.raises(RosterRefused, match="did not answer"):
        admit(FIRST, letter, join(invited("ash", FIRST), ASH), COORDINATOR)


def test_an_invite_of_somebody_else_is_refused() -> None:
    letter = invited("elm", FIRST, by=Identity.new())
    with pytest.raises(RosterRefused, match="not one of this coordinator's"):
        admit(FIRST, letter, join(letter, ASH), COORDINATOR)


def test_joining_again_with_another_key_takes_a_rotation() -> None:
    with pytest.raises(RosterRefused, match="takes a rotation"):
        joined(WITH_ASH, "ash", Identity.new())


def test_two_members_can_not_have_the_same_key() -> None:
    with pytest.raises(RosterRefused, match="same key"):
        joined(WITH_ASH, "elm", ASH)


def test_a_hospital_can_leave() -> None:
    without = dismiss(BOTH, "ash", COORDINATOR)
    assert without.sites == ["beech"]
    assert accept(without, BOTH) == Changes((), ("ash",), ())
    with pytest.raises(RosterRefused, match="no site"):
        dismiss(without, "ash", COORDINATOR)


# ---------------------------------------------------------------------------------------------------------------
# A new roster at a house


def test_the_first_roster_follows_the_invite_and_everybody_on_it_is_new() -> None:
    changes = accept(BOTH, invited("ash", FIRST))
    assert changes == Changes(("ash", "beech"), (), ())
    assert changes.need_approval


def test_a_newcomer_needs_approval() -> None:
    changes = accept(BOTH, WITH_ASH)
    assert changes == Changes(("beech",), (), ())
    assert changes.need_approval


def test_the_same_roster_again_changes_nothing() -> None:
    assert accept(BOTH, BOTH) == Changes((), (), ())


@pytest.mark.parametrize(
    ("roster", "reason"),
    [
        (WITH_ASH, "version 2 can't replace version 3"),
        (BOTH.model_copy(update={"version": 4}), "not signed by oak"),
        (BOTH.model_copy(update={"version": 4}).signed(ASH), "not signed by oak"),
        (BOTH.model_copy(update={"members": {"oak": COORDINATOR.public.hex()}}).signed(COORDINATOR), "can't replace"),
        (found_roster("meadow", "oak", COORDINATOR), "roster of meadow"),
        (found_roster("wood", "oak", ASH), "not signed by oak"),
    ],
)
def test_a_roster_that_may_not_follow_is_refused(roster: Roster, reason: str) -> None:
    with pytest.raises(RosterRefused, match=reason):
        accept(roster, BOTH)


# ---------------------------------------------------------------------------------------------------------------
# Rotations


def test_a_rotation_signed_by_the_old_key_is_accepted_without_a_telephone() -> None:
    new = Identity.new()
    roster = rotate(BOTH, rotation(ASH, new), COORDINATOR)
    changes = accept(roster, BOTH)
    assert changes == Changes((), (), ("ash",))
    assert not changes.need_approval
    assert roster.keys["ash"] == new.public


def test_a_rotation_that_the_old_key_did_not_sign_is_refused_by_the_coordinator() -> None:
    new = Identity.new()
    forged = Rotation(old=ASH.public.hex(), new=new.public.hex())
    for one in (forged, forged.signed(new), forged.signed(BEECH)):
        with pytest.raises(RotationRefused, match="not signed by its old one"):
            rotate(BOTH, one, COORDINATOR)


def test_a_key_that_is_nobody_s_can_not_be_rotated() -> None:
    with pytest.raises(RotationRefused, match="nobody's"):
        rotate(BOTH, rotation(Identity.new(), Identity.new()), COORDINATOR)


def test_a_coordinator_that_replaces_a_key_by_itself_is_refused_by_the_sites() -> None:
    puppet = {**BOTH.members, "ash": Identity.new().public.hex()}
    for rotations in ((), (Rotation(old=BOTH.members["ash"], new=puppet["ash"]).signed(COORDINATOR),)):
        roster = BOTH.model_copy(update={"version": 4, "members": puppet, "rotations": rotations})
        with pytest.raises(RotationRefused, match="telephone ash"):
            accept(roster.signed(COORDINATOR), BOTH)


def test_a_house_that_was_away_for_two_rotations_follows_both() -> None:
    second, third = Identity.new(), Identity.new()
    roster = rotate(BOTH, rotation(ASH, second), COORDINATOR)
    roster = rotate(roster, rotation(second, third), COORDINATOR)
    assert accept(roster, BOTH).rotated == ("ash",)


def test_rotations_in_a_circle_lead_nowhere() -> None:
    second = Identity.new()
    circle = (rotation(ASH, second), rotation(second, ASH))
    members = {**BOTH.members, "ash": Identity.new().public.hex()}
    roster = BOTH.model_copy(update={"version": 4, "members": members, "rotations": circle}).signed(COORDINATOR)
    with pytest.raises(RotationRefused):
        accept(roster, BOTH)


def test_the_coordinator_can_rotate_its_own_key() -> None:
    new = Identity.new()
    roster = rotate(BOTH, rotation(COORDINATOR, new), new)
    assert accept(roster, BOTH) == Changes((), (), ("oak",))
    assert accept(roster, invited("ash", FIRST)).added == ("ash", "beech")
    with pytest.raises(RosterRefused, match="not signed by oak"):  # the old key has no say any more
        accept(roster.signed(COORDINATOR), BOTH)


def test_after_a_rotation_the_old_key_signs_nothing_any_more() -> None:
    new, here = Identity.new(), MessageId(DIGEST, 1, "join", 1, "ash")
    roster = rotate(BOTH, rotation(ASH, new), COORDINATOR)
    assert security.open(seal(b"yes", here, new), here, roster.keys) == b"yes"
    with pytest.raises(WrongSignature):
        security.open(seal(b"yes", here, ASH), here, roster.keys)


# ---------------------------------------------------------------------------------------------------------------
# Files


@pytest.mark.parametrize("document", [BOTH, invited("ash", FIRST), join(invited("ash", FIRST), ASH)])
def test_a_document_comes_back_from_its_file(tmp_path: Path, document: Roster | Invite | Joining) -> None:
    write_document(document, tmp_path / "file.json")
    assert read_document(tmp_path / "file.json", type(document)) == document


def test_a_document_is_a_file_that_people_can_read(tmp_path: Path) -> None:
    write_document(BOTH, tmp_path / "roster.json")
    assert json.loads((tmp_path / "roster.json").read_text())["members"]["ash"] == ASH.public.hex()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no proper roster"),
        (BOTH.model_dump_json().replace('"version"', '"versoin"').encode(), "version, versoin"),
        (BOTH.model_dump_json().replace('"ash"', '"../ash"').encode(), "no proper roster"),
        (BOTH.model_dump_json().replace('"coordinator":"oak"', '"coordinator":"elm"').encode(), "not among"),
        (b" " * 5_000_001, "larger"),
    ],
)
def test_what_is_no_document_is_refused_with_the_place(raw: bytes, reason: str) -> None:
    with pytest.raises(RosterRefused, match=reason):
        parse_document(raw, Roster, "the roster")


def test_a_file_that_is_not_there_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(RosterRefused, match="cannot be read"):
        read_document(tmp_path / "nowhere.json", Roster)


def test_an_invite_is_not_taken_for_a_joining() -> None:
    with pytest.raises(RosterRefused):
        parse_document(invited("ash", FIRST).model_dump_json().encode(), Joining, "the file")


def test_no_roster_with_a_changed_byte_is_accepted() -> None:
    rng, new = random.Random(7), dismiss(BOTH, "ash", COORDINATOR)
    raw = new.model_dump_json().encode()
    assert accept(parse_document(raw, Roster, "the roster"), BOTH).removed == ("ash",)
    for _ in range(2000):
        at, other = rng.randrange(len(raw)), rng.randrange(1, 256)
        changed = raw[:at] + bytes([raw[at] ^ other]) + raw[at + 1 :]
        with pytest.raises(RosterRefused):
            accept(parse_document(changed, Roster, "the roster"), BOTH)


def test_two_names_that_differ_in_capital_letters_only_are_refused() -> None:
    with pytest.raises(RosterRefused, match="capital letters"):
        joined(WITH_ASH, "Ash", BEECH)
