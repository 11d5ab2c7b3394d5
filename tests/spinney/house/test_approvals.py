"""What a house has approved counts, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.study_file import write_study
from spinney.errors import StudyInvalid
from spinney.house.approvals import Approvals, NotApproved, approved_studies
from spinney.house.keys import Identity
from spinney.house.roster import Roster, RosterRefused, admit, dismiss, found_roster, invite, join
from spinney.study.study import Study

OAK, ASH, BEECH = Identity.new(), Identity.new(), Identity.new()
FEATURES = [{"name": "age", "kind": "continuous", "range": [0, 120]}]
STUDY = Study.model_validate({"name": "wood", "features": FEATURES, "label": {"name": "died"}})


def with_site(roster: Roster, site: str, identity: Identity) -> Roster:
    letter = invite(roster, STUDY.digest, site, "exchange", OAK)
    return admit(roster, letter, join(letter, identity), OAK)


FIRST = found_roster("wood", "oak", OAK)
WITH_ASH = with_site(FIRST, "ash", ASH)
BOTH = with_site(WITH_ASH, "beech", BEECH)


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    return Approvals(tmp_path / "home", "wood")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    write_study(STUDY, tmp_path / "study.yaml")
    return tmp_path / "study.yaml"


def test_a_study_counts_once_it_is_approved(approvals: Approvals, text: Path) -> None:
    with pytest.raises(NotApproved, match="spinney site approve"):
        _ = approvals.study
    assert approved_studies(approvals.home) == []
    approvals.approve_study(text, by="steward")
    assert approvals.study == STUDY
    assert approved_studies(approvals.home) == ["wood"]


def test_the_approved_study_stays_when_the_file_that_it_came_from_changes(approvals: Approvals, text: Path) -> None:
    approvals.approve_study(text)
    write_study(STUDY.with_settings(forest={"trees": 7}), text)
    assert approvals.study == STUDY


@pytest.mark.parametrize("damage", ["other: words", "name: wood"])
def test_an_approved_text_that_was_changed_counts_no_more(approvals: Approvals, text: Path, damage: str) -> None:
    approvals.approve_study(text)
    (approvals.folder / "study.yaml").write_text(damage)
    with pytest.raises(NotApproved, match="not the study that was approved"):
        _ = approvals.study


def test_other_settings_under_the_same_name_are_another_study(approvals: Approvals, text: Path) -> None:
    approvals.approve_study(text)
    write_study(STUDY.with_settings(privacy={"smallest_leaf": 2}), approvals.folder / "study.yaml")
    with pytest.raises(NotApproved, match="not the study that was approved"):
        _ = approvals.study


def test_a_study_is_not_approved_under_another_name(tmp_path: Path, text: Path) -> None:
    with pytest.raises(NotApproved, match="not meadow"):
        Approvals(tmp_path / "home", "meadow").approve_study(text)


def test_a_wrong_study_file_is_not_approved(approvals: Approvals, text: Path) -> None:
    text.write_text("name: wood\n")
    with pytest.raises(StudyInvalid):
        approvals.approve_study(text)
    assert approvals.approval is None


def test_decisions_are_in_the_audit_log_with_who_decided(approvals: Approvals, text: Path) -> None:
    approvals.approve_study(text, by="steward")
    approvals.approve_roster(WITH_ASH, by="steward")
    entries = [line.entry for line in approvals.audit.lines()]
    assert [(entry.direction, entry.peer) for entry in entries] == [("decided", "steward")] * 2
    assert entries[0].digest == STUDY.digest
    assert entries[1].words == "Decided by steward: version 2 of the roster is confirmed; new: ash, oak."


def test_a_roster_counts_once_it_is_approved(approvals: Approvals) -> None:
    with pytest.raises(NotApproved, match="approve-roster"):
        _ = approvals.roster
    assert approvals.approve_roster(WITH_ASH).need_approval
    assert approvals.roster == WITH_ASH
    assert approvals.approve_roster(BOTH).added == ("beech",)
    assert approvals.roster == BOTH


def test_an_older_roster_is_not_approved_after_a_newer_one(approvals: Approvals) -> None:
    approvals.approve_roster(BOTH)
    with pytest.raises(RosterRefused, match="can't replace"):
        approvals.approve_roster(WITH_ASH)
    assert approvals.roster == BOTH


def test_a_roster_has_to_come_from_the_coordinator_of_the_invite(approvals: Approvals) -> None:
    approvals.keep_invite(invite(FIRST, STUDY.digest, "ash", "exchange", OAK))
    with pytest.raises(RosterRefused, match="not signed by oak"):
        approvals.approve_roster(found_roster("wood", "oak", BEECH))


def test_rounds_run_under_the_version_in_force_and_not_under_the_newest(approvals: Approvals) -> None:
    approvals.approve_roster(WITH_ASH)
    approvals.approve_roster(BOTH)
    approvals.put_in_force(2)
    assert approvals.roster == WITH_ASH
    approvals.put_in_force(3)
    assert approvals.roster == BOTH
    approvals.put_in_force(2)
    assert approvals.roster == BOTH


def test_a_version_that_was_left_out_is_served_by_the_next_that_was_approved(approvals: Approvals) -> None:
    approvals.approve_roster(WITH_ASH)
    approvals.approve_roster(dismiss(BOTH, "beech", OAK))
    approvals.put_in_force(3)
    assert approvals.roster.version == 4


def test_a_house_sits_out_while_a_version_is_in_force_that_it_has_not_approved(approvals: Approvals) -> None:
    approvals.approve_roster(WITH_ASH)
    approvals.put_in_force(3)
    with pytest.raises(NotApproved, match=r"version 3 .* has approved version 2; run: spinney site approve-roster"):
        _ = approvals.roster


@pytest.mark.parametrize("name", ["../wood", "", "con"])
def test_a_study_s_name_can_not_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Exception, match="cannot be part of an address"):
        Approvals(tmp_path, name)


def test_papers_are_for_this_house_only(approvals: Approvals, text: Path) -> None:
    approvals.approve_study(text)
    approvals.approve_roster(WITH_ASH)
    modes = {path.stat().st_mode & 0o077 for path in approvals.folder.rglob("*")}
    assert modes == {0}
