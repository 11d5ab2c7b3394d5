"""A steward decides in the Prefect UI's way: the run of a served site is suspended until a signed answer comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CANDIDATE, CHAMPION
from spinney.demo.federation import COORDINATOR, Village
from spinney.house.admission import admission_of
from spinney.house.keys import Identity, KeyRing
from spinney.house.site_night import SiteNights
from tests.federations import breast_village
from tests.nights import others
from tests.servers.migrated import registry_in
from tests.servers.prefect_server import PrefectServer
from tests.servers.serving import Serving, add_settings, await_state, start

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]

SITES = ("ash", "birch", "cedar")
STUDY = "admitted"  # of its own, and so its deployment
PATIENCE = {"answer_minutes": 15, "opening_minutes": 15}


def served(server: PrefectServer, village: Village, folder: Path) -> Serving:
    return Serving(server, "site", village.site_file("ash"), folder)


def nights_of(village: Village) -> SiteNights:
    return SiteNights(read_site(village.site_file("ash")))


def await_question(run: UUID, attempt: int, serving: Serving) -> str:
    """What the steward reads, as soon as the run is suspended for the so many-th time."""
    from prefect.client.orchestration import get_client

    key = f"admission-1-{attempt}"
    found = await_state(
        run, lambda one: one.state.is_paused() and one.state.state_details.pause_key == key, lambda: serving.log
    )
    assert found.state.name == "Suspended"
    with get_client(sync_client=True) as client:
        return client.read_flow_run_input(run, found.state.state_details.run_input_keyset["description"])


def answer(run: UUID, signature: str) -> None:
    """As the form of the UI sends it."""
    from prefect.client.orchestration import get_client

    given: dict[str, Any] = {"approve": True, "steward": "warden", "signature": signature}
    with get_client(sync_client=True) as client:
        client.resume_flow_run(run, run_input=given)


def signed_by(steward: Identity, nights: SiteNights) -> str:
    result = nights.result(1)
    assert result is not None
    return admission_of(nights.study, result).sign(steward, approve=True)


def test_a_suspended_run_takes_the_stewards_signed_answer_also_after_a_power_cut(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    village = breast_village(tmp_path, SITES, name=STUDY, schedule=PATIENCE)
    registry = registry_in(village.home("ash"))
    steward = KeyRing(tmp_path / "steward").create()
    add_settings(
        village.site_file("ash"),
        {"stewards": {"warden": steward.public.hex()}, "prefect": {"schedule": "none"}},
    )
    with served(prefect_server, village, tmp_path) as serving:
        run = start(f"site-round/ash-{STUDY}", admission="manual")
        with others(village, "ash") as running:
            assert running[COORDINATOR].result()["absent"] == {}  # nobody waits for a steward
        assert f"of round 1 of {STUDY} be used at this site?" in await_question(run, 1, serving)
        assert registry.find(STUDY, CHAMPION) is None
        assert registry.version(STUDY, CANDIDATE).number == 1
        answer(run, signed_by(Identity.new(), nights_of(village)))
        assert "this is not the signature of warden" in await_question(run, 2, serving)
        assert registry.find(STUDY, CHAMPION) is None
        serving.cut_power()
    with served(prefect_server, village, tmp_path) as serving:
        signature = signed_by(steward, nights_of(village))
        answer(run, signature)
        ended = await_state(run, lambda one: one.state.is_final(), lambda: serving.log)
    assert ended.state.is_completed()
    assert [one.aliases for one in registry.versions(STUDY)] == [(CHAMPION,)]
    result = nights_of(village).result(1)
    assert result is not None
    assert (result["admission"], result["run"]) == ("approved", str(run))
    (line,) = [one.entry for one in nights_of(village).audit.lines() if one.entry.signature]
    assert (line.words, line.signature) == ("Decided by warden: the model of round 1 may be used here.", signature)
