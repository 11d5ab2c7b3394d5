"""Houses that have joined each other: only the joining was done for them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village, found_village
from spinney.house.approvals import Approvals
from spinney.house.keys import KeyRing
from tests.federations import breast_study

SITES = ("ash", "birch", "cedar")


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    source = {"source": {"kind": "files", "path": "fhir"}, "timezone": "Europe/Berlin"}
    return found_village(tmp_path_factory.mktemp("world") / "village", breast_study(), dict.fromkeys(SITES, source))


def test_every_house_has_settings_that_can_be_read(village: Village):
    assert village.sites == SITES
    for name in SITES:
        site = read_site(village.site_file(name))
        assert (site.name, site.home, site.timezone) == (name, village.home(name), "Europe/Berlin")
    assert read_coordinator(village.coordinator_file).home == village.home(COORDINATOR)


def test_all_have_approved_one_study_and_one_roster_that_is_in_force(village: Village):
    approvals = [Approvals(village.home(name), "breast") for name in (COORDINATOR, *SITES)]
    assert {one.study.digest for one in approvals} == {breast_study().digest}
    assert len({one.roster.digest for one in approvals}) == 1
    assert approvals[0].roster.sites == [*SITES]


def test_everybody_has_a_key_of_their_own_and_the_roster_knows_it(village: Village):
    roster = Approvals(village.home("ash"), "breast").roster
    keys = {name: KeyRing(village.home(name)).identity().public for name in (COORDINATOR, *SITES)}
    assert roster.keys == keys
    assert len({*keys.values()}) == len(keys)


def test_homes_are_for_their_houses_only(village: Village):
    for name in (COORDINATOR, *SITES):
        assert stat.S_IMODE(village.home(name).stat().st_mode) == 0o700


def test_another_exchange_is_what_every_house_is_told(tmp_path: Path):
    source = {"source": {"kind": "files", "path": "fhir"}}
    made = found_village(tmp_path, breast_study(), dict.fromkeys(SITES, source), {"url": "s3://bucket/wood"})
    assert read_site(made.site_file("ash")).exchange.url == "s3://bucket/wood"
    assert not (tmp_path / "exchange").exists()
