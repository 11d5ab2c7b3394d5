"""A fault at the end of one night, and the next night: the model isn't lost, and the site is in tonight's round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import Registry, RegistryFailed
from spinney.demo.federation import COORDINATOR, Village
from spinney.errors import CohortRejected
from spinney.house.site_night import SiteNights
from tests.federations import breast_village
from tests.forgetful import PowerCut
from tests.nights import others, served
from tests.servers.migrated import registry_in
from tests.servers.prefect_server import wait_until

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("prefect_server"),
    pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning"),
]


PATIENCE = {"answer_minutes": 3, "opening_minutes": 3}


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    made = breast_village(tmp_path, ("ash", "birch", "cedar"), trees=3, schedule=PATIENCE)
    registry_in(made.home("ash"))
    with served(made):
        yield made


def nights_of(village: Village) -> SiteNights:
    return SiteNights(read_site(village.site_file("ash")))


def ash() -> dict[str, Any]:
    from spinney.flows.site_round import SiteRoundInput, site_round

    return site_round(SiteRoundInput(site="ash"))


def rounds_registered(village: Village) -> list[int]:
    return sorted(one.round for one in registry_in(village.home("ash")).versions(village.study))


@pytest.fixture
def interrupted(village: Village, monkeypatch: pytest.MonkeyPatch) -> Village:
    """The round was over, and ash's power failed before it had kept its model."""

    def dies(*_: object) -> None:
        raise PowerCut("before the model is kept")

    with monkeypatch.context() as patch, others(village, "ash") as running:
        patch.setattr(Registry, "owe", dies)
        with pytest.raises(PowerCut):
            ash()
        assert running[COORDINATOR].result()["absent"] == {}
    assert nights_of(village).rounds.unfinished == 1
    return village


def test_where_the_coordinator_is_first_the_old_model_is_not_lost(interrupted: Village) -> None:
    village = interrupted
    with others(village, "ash") as running:
        wait_until(lambda: (village.folder / "exchange/breast/coordinator/2/opening.1").exists(), 60, str)
        result = ash()
        assert running[COORDINATOR].result()["absent"] == {}
    assert (result["round"], rounds_registered(village)) == (2, [1, 2])
    assert nights_of(village).result(1)["version"] == 1


def test_where_the_site_is_first_it_takes_part_in_both(interrupted: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    village = interrupted
    monkeypatch.setattr("spinney.flows.site_round.is_by_schedule", lambda: True)
    with ThreadPoolExecutor(1) as pool:
        night = pool.submit(copy_context().run, ash)
        wait_until(lambda: nights_of(village).result(1), 120, str)
        with others(village, "ash") as running:
            assert running[COORDINATOR].result()["absent"] == {}
        assert night.result()["round"] == 2
    assert rounds_registered(village) == [1, 2]


def test_a_night_that_goes_on_with_the_one_before_waits_for_no_other(interrupted: Village) -> None:
    assert (ash()["round"], rounds_registered(interrupted)) == (1, [1])


def test_a_registry_that_refuses_costs_its_own_night_only(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise RegistryFailed("MLflow refuses: no")

    with monkeypatch.context() as patch, others(village, "ash") as running:
        patch.setattr(Registry, "pay", refuses)
        from spinney.flows.site_round import NotRegistered

        with pytest.raises(NotRegistered, match="its model is kept, and the next run registers it"):
            ash()
        assert running[COORDINATOR].result()["absent"] == {}
    assert nights_of(village).rounds.unfinished is None
    with others(village, "ash") as running:
        assert ash()["round"] == 2
        assert running[COORDINATOR].result()["absent"] == {}
    assert rounds_registered(village) == [1, 2]


def test_a_site_without_patients_enough_is_waited_for_by_nobody(village: Village) -> None:
    table = village.folder.parent / "tables" / "ash.csv"
    head, *rows = table.read_text().splitlines()
    table.write_text("\n".join([head, *rows[:12]]))
    began = time.monotonic()
    with others(village, "ash") as running:
        with pytest.raises(CohortRejected, match="training patients"):
            ash()
        assert running[COORDINATOR].result()["absent"] == {"ash": "declined: data"}
    assert time.monotonic() - began < 60 * PATIENCE["answer_minutes"]
