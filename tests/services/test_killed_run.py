"""A run is killed while its house is served on: it is started again within a minute, and then with patience."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from prefect.client.schemas.objects import FlowRun

from spinney.flows.running.janitor import PATIENCE as BEFORE_A_TRY
from spinney.flows.running.janitor import revive
from tests.federations import breast_village
from tests.servers.prefect_server import PrefectServer, wait_until
from tests.servers.serving import PATIENCE, Serving, add_settings, await_state, start

pytestmark = [pytest.mark.service, pytest.mark.timeout(1200)]


def kill(run: UUID) -> None:
    """As a kernel does that has no memory left."""
    mark = f"PREFECT__FLOW_RUN_ID={run}".encode()

    def processes() -> list[int]:
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:
                continue
        return found

    for process in wait_until(processes, PATIENCE):
        os.kill(process, signal.SIGKILL)


def test_a_run_that_is_killed_under_a_living_house_is_started_again(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    village = breast_village(tmp_path, ("rowan", "birch", "cedar"), name="killed", schedule={"opening_minutes": 60})
    add_settings(village.site_file("rowan"), {"prefect": {"schedule": "none"}})
    serving = Serving(prefect_server, "site", village.site_file("rowan"), tmp_path)
    with serving, prefect_server.client() as client:
        deployment = client.read_deployment_by_name("site-round/rowan-killed").id
        of_it = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[deployment]))

        def tried(times: int) -> FlowRun | None:
            tag = f"again-{times}"
            return next((run for run in client.read_flow_runs(flow_run_filter=of_it) if tag in run.tags), None)

        run = start("site-round/rowan-killed")
        await_state(run, lambda run: run.state.is_running(), lambda: serving.log)
        kill(run)
        dead = await_state(run, lambda run: run.state.is_crashed(), lambda: serving.log)
        again = wait_until(lambda: tried(1), PATIENCE, lambda: serving.log)
        assert (again.created - dead.end_time) < timedelta(minutes=1)
        await_state(again.id, lambda run: run.state.is_running(), lambda: serving.log)
        assert "started again, its process was killed: " in serving.log
        kill(again.id)
        await_state(again.id, lambda run: run.state.is_crashed(), lambda: serving.log)
        assert revive(client, [deployment]) == [], "the second time it waits"
        later = datetime.now(UTC) + BEFORE_A_TRY[1]
        assert len(revive(client, [deployment], later)) == 1
        assert revive(client, [deployment], later) == [], "once"
        assert tried(2) is not None
