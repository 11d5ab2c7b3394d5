"""What a house's nights have in common: one run at a time, and results that stay."""

from __future__ import annotations

import pytest

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.demo.federation import Village
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.nights import AlreadyRunning
from spinney.house.site_night import SiteNights, summary_of
from tests.nights import night
from tests.spinney.house.houses import SITES


def test_what_came_of_a_round_stays_and_its_keys_and_memory_do_not(village: Village) -> None:
    result, parts = night(village)
    nights = SiteNights(read_site(village.site_file("ash")))
    assert nights.result(1) == summary_of(parts["ash"])
    assert CoordinatorNights(read_coordinator(village.coordinator_file)).result() == result
    for name in ("coordinator", *SITES):
        home = village.home(name)
        assert not list(home.glob("keys/rounds/**/*.key"))
        assert not (home / "rounds" / "breast" / "1").exists()


def test_a_second_run_of_a_house_says_that_the_first_is_at_it(village: Village) -> None:
    first, second = (SiteNights(read_site(village.site_file("ash"))) for _ in range(2))
    with first.alone(), pytest.raises(AlreadyRunning, match="another run of ash"), second.alone():
        pass
