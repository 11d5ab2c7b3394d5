"""What `spinney site deploy` and `spinney coordinator deploy` leave on a real Prefect server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner, Result

from spinney.demo.federation import Village
from tests.federations import breast_village
from tests.servers.prefect_server import PrefectServer, wait_until
from tests.servers.serving import add_settings

pytestmark = [pytest.mark.service, pytest.mark.timeout(600), pytest.mark.usefixtures("prefect_server")]

SITES = ("ash", "birch", "cedar")
SCHEDULE = {"cron": "30 1 * * *", "timezone": "Europe/Berlin"}


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return breast_village(tmp_path, SITES, schedule=SCHEDULE)


@pytest.fixture
def client(prefect_server: PrefectServer) -> Iterator[Any]:
    with prefect_server.client() as client:
        yield client


def spinney(*arguments: object) -> Result:
    from spinney.flows.cli import main

    return CliRunner().invoke(main, [str(one) for one in arguments])


def deploy_site(village: Village, name: str = "ash") -> str:
    answer = spinney("site", "deploy", "--site", village.site_file(name))
    assert answer.exit_code == 0, answer.output
    return answer.output


SAME = (
    "id",
    "name",
    "version",
    "entrypoint",
    "path",
    "parameters",
    "tags",
    "description",
    "paused",
    "enforce_parameter_schema",
)


def everything(client: Any) -> tuple[Any, Any]:
    """All that a second deploy could have doubled or changed."""
    deployments = [
        {
            **{field: getattr(one, field) for field in SAME},
            "limit": one.global_concurrency_limit.limit,
            "schedules": [(each.schedule, each.active, each.slug) for each in one.schedules],
        }
        for one in client.read_deployments()
    ]
    return deployments, sorted((one.name, one.id) for one in client.read_automations())


def test_deploying_twice_is_the_same_as_once(village: Village, client: Any):
    add_settings(village.site_file("ash"), {"alerts": {"webhook": "http://127.0.0.1:9/alerts"}})
    deploy_site(village)
    before = everything(client)
    deploy_site(village)
    assert everything(client) == before


def test_rounds_follow_the_studys_schedule_in_its_time_zone(village: Village, client: Any):
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId

    assert "site-round/ash-breast: 30 1 * * * Europe/Berlin" in deploy_site(village)
    deployment = client.read_deployment_by_name("site-round/ash-breast")
    of_it = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment.id]))
    planned = wait_until(lambda: client.read_flow_runs(flow_run_filter=of_it), seconds=120)
    local = {run.expected_start_time.astimezone(ZoneInfo("Europe/Berlin")).strftime("%H:%M") for run in planned}
    assert local == {"01:30"}


def test_the_coordinator_has_a_deployment_of_its_own(village: Village, client: Any):
    answer = spinney("coordinator", "deploy", "--coordinator", village.coordinator_file)
    assert "coordinator-round/coordinator-breast: 30 1 * * * Europe/Berlin" in answer.output
    deployment = client.read_deployment_by_name("coordinator-round/coordinator-breast")
    assert deployment.entrypoint == "spinney.flows.coordinator_round.coordinator_round"
    assert deployment.parameters == {"run": {"coordinator": "coordinator", "study": "breast"}}


def test_one_run_at_a_time_and_the_next_one_waits(village: Village, client: Any):
    deploy_site(village)
    deployment = client.read_deployment_by_name("site-round/ash-breast")
    assert deployment.global_concurrency_limit.limit == 1
    assert deployment.concurrency_options.collision_strategy == "ENQUEUE"


def test_a_schedule_that_somebody_paused_stays_paused(village: Village, client: Any):
    deploy_site(village)
    deployment = client.read_deployment_by_name("site-round/ash-breast")
    client.update_deployment_schedule(deployment.id, deployment.schedules[0].id, active=False)
    deploy_site(village)
    assert [one.active for one in client.read_deployment_by_name("site-round/ash-breast").schedules] == [False]


def test_a_site_that_others_start_has_no_schedule(village: Village, client: Any):
    deploy_site(village)
    add_settings(village.site_file("ash"), {"prefect": {"schedule": "none"}})
    assert "site-round/ash-breast: no schedule" in deploy_site(village)
    assert client.read_deployment_by_name("site-round/ash-breast").schedules == []


def test_alerts_that_are_no_longer_wanted_go(village: Village, client: Any):
    file, before = village.site_file("ash"), village.site_file("ash").read_text()
    add_settings(file, {"alerts": {"webhook": "http://127.0.0.1:9/alerts"}})
    assert "alerts: webhook" in deploy_site(village)
    file.write_text(before)
    assert "nobody is told; write `alerts` into site.yaml" in deploy_site(village)
    assert [one.name for one in client.read_automations() if "ash" in one.name] == ["site ash: a lost run"]


def test_every_field_of_the_form_says_what_it_is_for(village: Village, client: Any):
    add_settings(village.site_file("ash"), {"scores": {"table": {"url": "sqlite:///scores.db"}}})
    deploy_site(village)
    spinney("coordinator", "deploy", "--coordinator", village.coordinator_file)
    flows = ("site-round", "site-check", "site-score", "site-monitor")
    for name in (*(f"{flow}/ash-breast" for flow in flows), "coordinator-round/coordinator-breast"):
        schema = client.read_deployment_by_name(name).parameter_openapi_schema
        assert schema.get("required", []) == []
        for model in schema["definitions"].values():
            fields = model.get("properties", {})
            assert [field for field, words in fields.items() if not words.get("description")] == []


def test_who_lets_the_model_be_used_is_chosen_from_a_list(village: Village, client: Any):
    deploy_site(village)
    schema = client.read_deployment_by_name("site-round/ash-breast").parameter_openapi_schema
    field = schema["definitions"]["SiteRoundInput"]["properties"]["admission"]
    assert (field["enum"], field["default"]) == (["as set", "manual"], "as set")


def test_nightly_scores_are_deployed_where_the_site_says_where_they_go(village: Village, client: Any):
    scores = {"scores": {"table": {"url": "sqlite:///scores.db"}}}
    add_settings(village.site_file("ash"), scores)
    deploy_site(village)
    flows = {client.read_flow(one.flow_id).name for one in client.read_deployments() if "site:ash" in one.tags}
    assert flows == {"site-round", "site-check", "site-score", "site-monitor"}


def test_a_house_that_has_approved_no_study_is_told_what_to_do(village: Village, tmp_path: Path):
    add_settings(village.site_file("birch"), {"home": str(tmp_path / "empty")})
    answer = spinney("site", "deploy", "--site", village.site_file("birch"))
    assert answer.exit_code == 2
    assert "no study is approved here; to approve one: spinney site approve STUDY" in answer.output


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9/api", "no Prefect server answers at http://127.0.0.1:9/api"),
        ("", "PREFECT_API_URL is not set"),
    ],
)
def test_a_prefect_server_that_is_not_there_is_said(village: Village, url: str, words: str):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: url or None}):
        answer = spinney("site", "deploy", "--site", village.site_file("ash"))
    assert (answer.exit_code, words in answer.output) == (2, True), answer.output
