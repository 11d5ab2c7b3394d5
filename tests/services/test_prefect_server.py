"""The Prefect server that the service tests share."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from spinney.doctor.doors import OF_PREFECT, check_door
from spinney.flows.demo.prefect_server import template_file
from spinney.storage import locks
from tests.servers.prefect_server import PrefectServer, migrated_database

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]

UNIT = Path(__file__).parents[2] / "deployments/systemd/spinney-prefect.service"
PROGRAM = """
from prefect import flow

@flow
def twice(number: int) -> int:
    return 2 * number

print(twice(21))
"""


def test_a_flow_in_this_process_runs_on_the_shared_server(prefect_server: PrefectServer):
    from prefect import flow
    from prefect.client.orchestration import get_client

    @flow
    def here() -> str:
        return "here"

    state = here(return_state=True)
    with get_client(sync_client=True) as client:
        assert str(client.api_url).rstrip("/") == prefect_server.api
        assert client.read_flow_run(state.state_details.flow_run_id).state.is_completed()


def test_a_flow_in_a_process_of_its_own_runs_on_it_too(prefect_server: PrefectServer, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    answer = subprocess.run(
        [sys.executable, program], env=prefect_server.environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout == "42\n"


def test_the_server_of_the_unit_unpacks_its_pages_where_it_may_write_and_asks_for_a_login(
    prefect_database: Path, tmp_path: Path
):
    said = dict(re.findall(r"^Environment=([A-Z_]+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    settings = {name: value.replace("/var/lib/spinney", str(tmp_path)) for name, value in said.items()}
    settings |= {"PREFECT_SERVER_API_AUTH_STRING": "admin:made-up", "PREFECT_API_AUTH_STRING": "admin:made-up"}
    with PrefectServer(tmp_path / "prefect", prefect_database, settings) as server:
        page = httpx.get(server.ui, follow_redirects=True, trust_env=False)
        login = check_door(server.api, OF_PREFECT, lambda: ["127.0.0.1"])
    assert (page.status_code, "<html" in page.text) == (200, True)
    assert login.words == "asks for a login"
    assert [*(tmp_path / "prefect" / "ui").rglob("index.html")]


def test_the_doctor_finds_a_server_that_lets_everybody_in(prefect_server: PrefectServer):
    assert check_door(prefect_server.api, OF_PREFECT, lambda: []).state == "ok"
    assert check_door(prefect_server.api, OF_PREFECT, lambda: ["127.0.0.1"]).state == "wrong"


def test_whoever_needs_a_database_while_another_process_makes_it_waits_and_takes_that_one(tmp_path: Path):
    template = template_file(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        with locks.in_turn(tmp_path / f".{template.name}.lock"):
            waiting = pool.submit(migrated_database, tmp_path)
            template.write_bytes(b"made by the other process")
        assert waiting.result(60).read_bytes() == b"made by the other process"
