"""The facts of a night, gathered from the round, the vault and the audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.site import read_site
from spinney.house.site_night import SiteNights
from spinney.reports.gather import round_facts, site_facts
from tests.spinney.house.houses import SITES, World, small_cohorts, small_study


@pytest.fixture
def nights(two_nights) -> SiteNights:
    return SiteNights(read_site(two_nights[0].site_file("ash")))


def test_a_night_is_told_with_what_the_house_knows_of_it(nights: SiteNights, two_nights):
    part = two_nights[2]
    facts = site_facts(nights, part)
    assert (facts.site, facts.round, facts.missed) == ("ash", 2, "")
    assert facts.outcome is part.outcome
    assert facts.peers == ["birch", "cedar"]
    assert facts.standing.champion == "1"


def test_only_lines_of_this_round_are_in_it(nights: SiteNights, two_nights):
    for part in two_nights[1:]:
        lines = site_facts(nights, part).lines
        assert lines
        assert {line.entry.round for line in lines} == {part.number}


def test_a_night_that_was_missed_says_why_and_who_is_champion_stays(nights: SiteNights):
    facts = site_facts(nights, None, missed="the cohort was rejected")
    assert (facts.round, facts.outcome, facts.missed) == (0, None, "the cohort was rejected")
    assert (facts.standing.version, facts.standing.champion) == ("", "1")
    assert facts.vector == {}


def test_a_round_is_told_as_its_coordinator_saw_it(tmp_path: Path):
    study = small_study()
    world = World(tmp_path, study, small_cohorts(study))
    coordinator = world.coordinator()
    over = world.night({"coordinator": coordinator.run, **world.honest(*SITES)})["coordinator"]
    facts = round_facts(coordinator, over)
    assert (facts.coordinator, facts.round, facts.void) == ("coordinator", 1, "")
    assert facts.model == over.model
    assert set(facts.described) == {*SITES}
    assert facts.absent == {}
    assert {line.entry.direction for line in facts.lines} == {"sent", "received"}
