"""A house that is served by a process of its own: what waits, what survives a power cut, and who is told."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from click.testing import CliRunner, Result
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from prefect.client.schemas.objects import FlowRun

from spinney.demo.federation import Village
from spinney.house.audit import Audit
from tests.federations import breast_village
from tests.servers.prefect_server import PrefectServer, wait_until
from tests.servers.serving import PATIENCE, SPINNEY, Serving, add_settings, await_state, run_of, start
from tests.servers.sinks import HttpSink, MailSink

pytestmark = [pytest.mark.service, pytest.mark.timeout(1200)]

LONG, SHORT = {"opening_minutes": 60}, {"opening_minutes": 0.05}


def village_of(name: str, folder: Path, schedule: dict[str, float]) -> Village:
    """Every test has a site of its own name: they share a server, as the houses of a group might."""
    return breast_village(folder, (name, "birch", "cedar"), schedule=schedule)


def served(server: PrefectServer, village: Village, name: str) -> Serving:
    return Serving(server, "site", village.site_file(name), village.folder)


def spinney(*arguments: object) -> Result:
    from spinney.flows.cli import main

    return CliRunner().invoke(main, [str(one) for one in arguments])


def is_running(run) -> bool:
    assert not run.state.is_failed(), run.state
    return run.state.is_running()


@dataclass(frozen=True)
class Left:
    """Houses that were left to themselves before the first test: what is due meanwhile takes minutes."""

    lost_run: UUID  # of a site whose machine is gone
    missed: Village  # with a night every minute, and nobody who serves it


@pytest.fixture(scope="module", autouse=True)
def left(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Left:
    missed = village_of("linden", tmp_path_factory.mktemp("missed"), {**LONG, "cron": "* * * * *"})
    assert spinney("site", "deploy", "--site", missed.site_file("linden")).exit_code == 0
    lost = village_of("alder", tmp_path_factory.mktemp("lost"), LONG)
    add_settings(lost.site_file("alder"), {"alerts": {"lost_seconds": 90}})
    with served(prefect_server, lost, "alder") as serving:
        run = start("site-round/alder-breast")
        await_state(run, is_running, lambda: serving.log)
        serving.await_words("encode the cohort")
        serving.cut_power()
    return Left(run, missed)


def test_a_second_run_waits_until_the_first_is_over_also_through_a_power_cut(
    prefect_server: PrefectServer, tmp_path: Path
):
    village = village_of("oak", tmp_path, LONG)
    with served(prefect_server, village, "oak") as serving:
        first = start("site-round/oak-breast")
        await_state(first, is_running, lambda: serving.log)
        second = start("site-round/oak-breast")
        await_state(second, lambda run: run.state.name == "AwaitingConcurrencySlot", lambda: serving.log)
        assert run_of(first).state.is_running()
        serving.cut_power()
        assert run_of(first).state.is_running(), "Prefect does not know that it is gone"
    with served(prefect_server, village, "oak") as serving:
        assert "ended, their process is gone: " in serving.log
        assert run_of(first).state.is_crashed()
        await_state(second, is_running, lambda: serving.log)


def test_a_night_that_a_restart_interrupts_is_started_again(prefect_server: PrefectServer, tmp_path: Path):
    village = village_of("larch", tmp_path, LONG)
    with served(prefect_server, village, "larch") as serving:
        run = start("site-round/larch-breast")
        await_state(run, is_running, lambda: serving.log)
        assert serving.stop() == 0
        assert run_of(run).state.is_cancelled()
    with served(prefect_server, village, "larch") as serving:
        assert "started again: " in serving.log
        serving.await_words("Beginning flow run")


def test_a_house_is_served_once(prefect_server: PrefectServer, tmp_path: Path):
    village = village_of("pine", tmp_path, LONG)
    with served(prefect_server, village, "pine"):
        answer = spinney("site", "serve", "--site", village.site_file("pine"))
    assert answer.exit_code == 2
    assert "pine is served already; stop the other process first" in answer.output


def test_whoever_reaches_the_api_can_ask_for_a_run_but_not_for_other_settings_or_other_code(
    prefect_server: PrefectServer, tmp_path: Path
):
    village, planted = village_of("rowan", tmp_path, LONG), tmp_path / "planted"
    foreign = village.site_file("rowan").parent.parent / "foreign.yaml"
    foreign.write_text("name: rowan\nsource: {kind: fhir-rest, base_url: 'http://127.0.0.1:9/fhir'}\n")
    with served(prefect_server, village, "rowan") as serving, prefect_server.client() as client:
        deployment = client.read_deployment_by_name("site-check/rowan-breast")

        def asked(**form: str) -> httpx.Response:
            run = {"state": {"type": "SCHEDULED"}, "parameters": {"run": form}}
            return httpx.post(f"{prefect_server.api}/deployments/{deployment.id}/create_flow_run", json=run)

        def ended(site: str) -> FlowRun:
            run = wait_until(lambda: asked(site=site).json().get("id"), PATIENCE)  # while it applies, Prefect is busy
            return await_state(UUID(run), lambda run: run.state.is_final(), lambda: serving.log)

        assert asked(site="rowan", file=str(foreign)).status_code == 409, "no such field in the form"
        refused = [ended("../foreign.yaml")]
        step = {"prefect.deployments.steps.run_shell_script": {"script": f"touch {planted}"}}
        foreign.with_suffix(".py").write_text(f"open({str(planted)!r}, 'w')")
        changed = {"pull_steps": [step], "entrypoint": f"{foreign.with_suffix('.py')}:site_check"}
        assert httpx.patch(f"{prefect_server.api}/deployments/{deployment.id}", json=changed).is_success
        refused.append(ended("foreign"))
    assert ["name one site that is served here: rowan" in run.state.message for run in refused] == [True, True]
    assert not planted.exists(), "what a run does is fixed by who serves it"
    words = [line.entry.words for line in Audit(village.home("rowan") / "audit.jsonl").lines()]
    assert [word for word in words if "which is not served here" in word] == [
        f"A run asked for the site {name!r}, which is not served here." for name in ("../foreign.yaml", "foreign")
    ]


def test_a_site_whose_coordinator_opens_no_round_says_so_and_tells_its_people(
    prefect_server: PrefectServer, tmp_path: Path
):
    village = village_of("rowan", tmp_path, SHORT)
    with HttpSink() as hook, MailSink() as mail:
        add_settings(
            village.site_file("rowan"),
            {
                "alerts": {
                    "webhook": hook.url,
                    "mail": {
                        "host": "127.0.0.1",
                        "port": mail.port,
                        "encryption": "none",
                        "sender": "spinney@hospital.example",
                        "to": ["steward@hospital.example"],
                    },
                }
            },
        )
        with served(prefect_server, village, "rowan") as serving:
            assert "alerts: webhook and e-mail" in serving.log
            run = await_state(start("site-round/rowan-breast"), lambda run: run.state.is_final(), lambda: serving.log)
            assert run.state.name == "Failed"
            assert "coordinator has opened no round of breast" in run.state.message
            assert "keeps the model that it has" in run.state.message
            alert = wait_until(lambda: [one for one in hook.received if one["id"] == str(run.id)], PATIENCE)[0]
            assert (alert["alert"], alert["house"], alert["state"]) == ("failed", "rowan", "Failed")
            assert alert["link"].endswith(f"/runs/flow-run/{run.id}")
            letter = wait_until(lambda: [one for one in mail.received if str(run.id) in one.get_payload()], PATIENCE)[0]
            assert letter["Subject"] == "Spinney, site rowan: a night failed"
            assert "opened no round" not in letter.get_payload(), "reasons stay in the house"


@pytest.mark.usefixtures("prefect_server")
def test_a_round_that_does_not_happen_is_told(tmp_path: Path):
    village = village_of("yew", tmp_path, LONG)
    file = village.site_file("yew")
    with HttpSink() as hook:
        alerts = {"webhook": hook.url, "silent_hours": 10 / 3600}
        add_settings(file, {"alerts": alerts, "prefect": {"schedule": "none"}})
        assert spinney("site", "deploy", "--site", file).exit_code == 0
        told = wait_until(lambda: hook.received, PATIENCE)[0]
        assert (told["alert"], told["house"]) == ("silent", "yew")
        file.write_text(file.read_text().replace(hook.url, ""))
        spinney("site", "deploy", "--site", file)


def served_words(told: str) -> dict[str, str]:
    """What `deploy` says that the workers have to know."""
    (line,) = (line for line in told.splitlines() if "SPINNEY_SERVED=" in line)
    return {"SPINNEY_SERVED": line.partition("SPINNEY_SERVED=")[2].strip("'")}


def test_workers_of_the_hospitals_own_run_the_flows_as_well(prefect_server: PrefectServer, tmp_path: Path):
    village = village_of("poplar", tmp_path, LONG)
    add_settings(village.site_file("poplar"), {"prefect": {"pool": "hospital"}})
    with prefect_server.client() as client:
        client.create_work_pool(WorkPoolCreate(name="hospital", type="process"))
    answer = spinney("site", "deploy", "--site", village.site_file("poplar"))
    assert answer.exit_code == 0, answer.output
    refused = spinney("site", "serve", "--site", village.site_file("poplar"))
    assert "the workers of the pool hospital run poplar's flows" in refused.output
    command = [SPINNEY.with_name("prefect"), "worker", "start", "--pool", "hospital", "--type", "process"]
    run = start("site-check/poplar-breast")
    with (tmp_path / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**prefect_server.environment, **served_words(answer.output)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background
        )
    try:
        done = await_state(run, lambda run: run.state.is_final(), (tmp_path / "worker.log").read_text)
        assert done.state.name == "Completed"
    finally:
        worker.terminate()
        try:
            worker.wait(60)
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.usefixtures("prefect_server")
def test_a_pool_that_is_not_there_is_said(tmp_path: Path):
    village = village_of("sorrel", tmp_path, LONG)
    add_settings(village.site_file("sorrel"), {"prefect": {"pool": "nowhere"}})
    answer = spinney("site", "deploy", "--site", village.site_file("sorrel"))
    assert answer.exit_code == 2
    assert "nowhere" in answer.output


def test_a_run_whose_machine_is_gone_is_ended_by_the_server_itself(left: Left):
    lost = await_state(left.lost_run, lambda run: run.state.is_final())
    assert (lost.state.name, lost.state.message) == ("Crashed", "its process was lost")


def test_of_several_missed_nights_only_the_newest_is_run(prefect_server: PrefectServer, left: Left):
    with prefect_server.client() as client:
        known = client.read_deployment_by_name("site-round/linden-breast")
        of_it = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[known.id]))

        def late() -> list[str]:
            runs = client.read_flow_runs(flow_run_filter=of_it)
            return [run.name for run in runs if run.expected_start_time < datetime.now(UTC)]

        wait_until(lambda: len(late()) >= 3, PATIENCE)
        missed = late()
        with served(prefect_server, left.missed, "linden") as serving:
            assert "nights that are past, cancelled: " in serving.log
        runs = client.read_flow_runs(flow_run_filter=of_it)
        assert sum(run.name in missed and run.state_name == "Cancelled" for run in runs) >= len(missed) - 1
        client.delete_deployment(known.id)
