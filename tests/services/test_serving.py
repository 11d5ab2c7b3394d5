"""A house that is served by a process of its own: what waits, what survives a power cut, and who is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connectors.village import Village
from tests.servers.prefect_server import PrefectServer, wait_until
from tests.servers.serving import PATIENCE, Serving, add_settings, await_state, run_of, start
from tests.servers.sinks import HttpSink, MailSink
from tests.villages import breast_village

pytestmark = [pytest.mark.service, pytest.mark.timeout(1200)]

LONG, SHORT = {"opening_minutes": 60}, {"opening_minutes": 0.05}


def village_of(name: str, folder: Path, schedule: dict[str, float]) -> Village:
    """Every test has a site of its own name: they share a server, as the houses of a group might."""
    return breast_village(folder, (name, "birch", "cedar"), schedule=schedule)


def served(server: PrefectServer, village: Village, name: str) -> Serving:
    return Serving(server, "site", village.site_file(name), village.folder)


def spinney(*arguments: object) -> Result:
    from flows.cli import main

    return CliRunner().invoke(main, [str(one) for one in arguments])


def is_running(run) -> bool:
    assert not run.state.is_failed(), run.state
    return run.state.is_running()


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
