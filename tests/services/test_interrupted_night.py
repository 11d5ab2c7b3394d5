"""The power fails at a served site in the middle of a round: when it is back, the round goes on by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CHAMPION
from spinney.demo.federation import COORDINATOR
from spinney.house.site_night import SiteNights
from tests.federations import breast_village
from tests.nights import others
from tests.servers.migrated import registry_in
from tests.servers.prefect_server import PrefectServer, wait_until
from tests.servers.serving import PATIENCE, Serving, add_settings, run_of, start

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]

SITES = ("ash", "birch", "cedar")
STUDY = "interrupted"  # of its own, and so its deployment
SCHEDULE = {"answer_minutes": 15, "opening_minutes": 15}


def test_a_round_that_a_power_cut_interrupts_ends_with_every_site(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    village = breast_village(tmp_path, SITES, name=STUDY, schedule=SCHEDULE)
    registry, file = registry_in(village.home("ash")), village.site_file("ash")
    add_settings(file, {"prefect": {"schedule": "none"}})
    nights = SiteNights(read_site(file))
    with others(village, "ash", "cedar") as running:  # the round waits for cedar
        with Serving(prefect_server, "site", file, tmp_path) as serving:
            run = start(f"site-round/ash-{STUDY}")
            wait_until(lambda: nights.rounds.unfinished == 1, PATIENCE, lambda: serving.log)
            serving.cut_power()
        with Serving(prefect_server, "site", file, tmp_path) as serving, others(village, COORDINATOR, "ash", "birch"):
            assert "started again: " in serving.log
            assert running[COORDINATOR].result()["absent"] == {}
            result = wait_until(lambda: nights.result(1), PATIENCE, lambda: serving.log)
    assert run_of(run).state.is_crashed()
    assert result["run"] != str(run)
    assert [(one.number, one.aliases) for one in registry.versions(STUDY)] == [(1, (CHAMPION,))]
    assert registry.version(STUDY, 1).model_digest == result["choice"]["model"]
