"""Nights as flows on a real Prefect server: the simulation's model, one version each, readable runs and artifacts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CHAMPION, Registry
from spinney.demo.federation import Village
from tests.federations import breast_study, breast_village, simulated
from tests.nights import leave_old, served
from tests.servers.prefect_server import PrefectServer

pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


Night = tuple[Village, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory, prefect_server: PrefectServer) -> Night:  # noqa: ARG001
    """One night of four sites."""
    schedule = {"answer_minutes": 5, "opening_minutes": 5}
    village = breast_village(tmp_path_factory.mktemp("night"), schedule=schedule)
    leave_old(village, "yew")
    return village, night(village)


def night(village: Village) -> dict[str, dict[str, Any]]:
    """All houses at once, in threads."""
    from spinney.flows.coordinator_round import CoordinatorRoundInput, coordinator_round
    from spinney.flows.site_round import SiteRoundInput, site_round

    with served(village), ThreadPoolExecutor(len(village.sites) + 1) as pool:
        here = copy_context
        running = {name: pool.submit(here().run, site_round, SiteRoundInput(site=name)) for name in village.sites}
        running["coordinator"] = pool.submit(here().run, coordinator_round, CoordinatorRoundInput())
        return {name: future.result() for name, future in running.items()}


def champion(village: Village, name: str) -> Any:
    site = read_site(village.site_file(name))
    found = Registry(site.home, site.registry).find("breast", CHAMPION)
    assert found is not None
    return found


def test_a_night_of_flows_gives_the_simulation_s_model_and_one_version_each(over: Night) -> None:
    from spinney.flows.site_round import SiteRoundInput, site_round

    village, results = over
    study = breast_study(schedule={"answer_minutes": 5, "opening_minutes": 5})
    reference = simulated(village, study)
    assert results["coordinator"]["model"] == reference.model_digest
    for name in village.sites:
        assert results[name]["choice"]["model"] == reference.outcomes[name].model.digest
        assert champion(village, name).number == 1
        assert (village.home(name) / "reports" / "breast" / "round-1.html").exists()
    with served(village):
        again = site_round(SiteRoundInput(site="ash", number=1))
    assert again == results["ash"]


def test_what_a_house_that_is_long_gone_has_left_on_the_exchange_is_deleted_by_the_coordinator(over: Night) -> None:
    village, _ = over
    assert not (village.folder / "exchange" / village.study / "yew" / "7").exists()
    assert (village.folder / "exchange" / village.study / "ash" / "1" / "join.1").exists()


def test_runs_are_called_by_what_they_do_and_artifacts_are_there(over: Night) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    run = over[1]["ash"]["run"]
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(run).name == "breast, round 1, ash"
        tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run])))
        artifacts = {
            one.key for one in client.read_artifacts(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run])))
        }
    names = {task.name for task in tasks}
    assert {"join round 1", "grow 6 trees", "check the forests of 4 sites", "score 24 trees of 4 sites"} <= names
    assert {"ash-breast-choice", "ash-breast-candidates", "breast-quality", "ash-breast-round"} <= artifacts
