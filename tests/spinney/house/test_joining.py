"""Who joins and who leaves: what does not fit together is refused before anything is made or signed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.study_file import write_study
from spinney.connectors.exchange import BadAddress, Exchange
from spinney.house.approvals import Approvals, NotApproved
from spinney.house.joining import (
    CannotJoin,
    admitted,
    answer_invite,
    change_roster,
    found_study,
    newest_of,
    rotated,
    rotated_everywhere,
    write_invite,
)
from spinney.house.keys import KeyRing
from spinney.house.roster import Invite, Roster, RosterRefused, RotationRefused, join, rotation
from spinney.study.study import Study

STUDY = Study.model_validate(
    {
        "name": "wood",
        "features": [{"name": "age", "kind": "continuous", "range": [0, 120]}],
        "label": {"name": "died"},
    }
)
URL = "../exchange"


@pytest.fixture
def exchange(tmp_path: Path) -> Exchange:
    (tmp_path / "exchange").mkdir()
    return Exchange.open(str(tmp_path / "exchange"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_study(STUDY, tmp_path / "study.yaml")
    return tmp_path / "study.yaml"


@pytest.fixture
def oak(tmp_path: Path, exchange: Exchange, file: Path) -> Approvals:
    """A coordinator that has founded the study."""
    KeyRing(tmp_path / "oak").create()
    approvals = Approvals(tmp_path / "oak", "wood")
    found_study(approvals, exchange, "oak", file)
    return approvals


def admit_ash(oak: Approvals, exchange: Exchange, home: Path) -> Roster:
    joining = answer_invite(home, "ash", write_invite(oak, "ash", URL))
    return change_roster(oak, exchange, admitted(oak, joining), "ash takes part")


def test_a_study_is_founded_once_and_its_text_may_be_approved_again(oak: Approvals, exchange: Exchange, file: Path):
    first = newest_of(oak)
    assert (first.coordinator, first.version, first.sites) == ("oak", 1, [])
    assert found_study(oak, exchange, "oak", file) == STUDY
    assert newest_of(oak) == first


def test_a_site_that_answers_its_invite_is_on_the_next_roster(oak: Approvals, exchange: Exchange, tmp_path: Path):
    roster = admit_ash(oak, exchange, tmp_path / "ash")
    assert (roster.version, roster.sites) == (2, ["ash"])
    assert roster.keys["ash"] == KeyRing(tmp_path / "ash").identity().public
    assert newest_of(oak) == roster
    decisions = [line.entry.words for line in oak.audit.lines() if line.entry.kind == "RosterChange"]
    assert decisions[-1].endswith("ash takes part; version 2 of the roster.")


@pytest.mark.parametrize(("site", "words"), [("oak", "the coordinator itself"), ("../ash", "cannot be part of an")])
def test_an_invite_is_for_a_house_that_can_be_one(oak: Approvals, site: str, words: str):
    with pytest.raises((CannotJoin, BadAddress), match=words):
        write_invite(oak, site, URL)
    assert not list((oak.folder).glob("invites/*"))


def test_nobody_is_admitted_who_was_not_invited(oak: Approvals, tmp_path: Path):
    invited = write_invite(oak, "ash", URL)
    joining = join(invited, KeyRing(tmp_path / "elm").create())
    (oak.folder / "invites/ash.json").unlink()
    with pytest.raises(RosterRefused, match="ash was not invited to wood"):
        admitted(oak, joining)


def test_an_invite_for_another_house_makes_no_key(oak: Approvals, tmp_path: Path):
    with pytest.raises(CannotJoin, match=r"for ash, and site\.yaml says that this is birch"):
        answer_invite(tmp_path / "birch", "birch", write_invite(oak, "ash", URL))
    assert not (tmp_path / "birch").exists()


def test_a_study_of_another_digest_than_the_one_that_was_signed_is_not_kept(oak: Approvals, tmp_path: Path):
    invited = write_invite(oak, "ash", URL)
    forged: Invite = invited.model_copy(update={"study_digest": "5" * 64}).signed(KeyRing(oak.home).identity())
    with pytest.raises(CannotJoin, match="another digest here"):
        answer_invite(tmp_path / "ash", "ash", forged)
    assert not (tmp_path / "ash" / "keys").exists()


def test_a_second_coordinator_does_not_take_a_study_over(oak: Approvals, file: Path, tmp_path: Path):
    answer_invite(tmp_path / "ash", "ash", write_invite(oak, "ash", URL))
    KeyRing(tmp_path / "mallory").create()
    mallory = Approvals(tmp_path / "mallory", "wood")
    (tmp_path / "other").mkdir()
    found_study(mallory, Exchange.open(str(tmp_path / "other")), "oak", file)
    with pytest.raises(CannotJoin, match="by another key; telephone"):
        answer_invite(tmp_path / "ash", "ash", write_invite(mallory, "ash", URL))
    assert Approvals(tmp_path / "ash", "wood").invite.key == KeyRing(oak.home).identity().public.hex()


def test_answered_twice_it_is_the_same_house(oak: Approvals, tmp_path: Path):
    invited = write_invite(oak, "ash", URL)
    assert answer_invite(tmp_path / "ash", "ash", invited) == answer_invite(tmp_path / "ash", "ash", invited)


def test_a_changed_key_takes_the_place_of_its_owner_s_and_of_nobody_else_s(
    oak: Approvals, exchange: Exchange, tmp_path: Path
):
    admit_ash(oak, exchange, tmp_path / "ash")
    ring = KeyRing(tmp_path / "ash")
    change = rotation(ring.identity(), ring.next_identity())
    owner, roster = rotated(oak, change)
    assert (owner, roster.keys["ash"]) == ("ash", ring.next_identity().public)
    assert set(rotated_everywhere(oak.home, change)) == {"wood"}


def test_a_rotation_of_a_key_that_no_roster_has_is_refused(oak: Approvals, tmp_path: Path):
    ring = KeyRing(tmp_path / "elm")
    change = rotation(ring.create(), ring.next_identity())
    assert rotated(oak, change) is None
    with pytest.raises(RotationRefused, match="nobody's in any roster here"):
        rotated_everywhere(oak.home, change)


def test_without_a_roster_there_is_nothing_to_change(tmp_path: Path):
    with pytest.raises(NotApproved, match="has no roster here"):
        newest_of(Approvals(tmp_path, "wood"))
