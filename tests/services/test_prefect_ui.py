"""A group of houses on one Prefect server, and a person in front of its UI: a real browser, real clicks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prefect.client.schemas.objects import FlowRun

from spinney.demo.federation import COORDINATOR, Village
from tests.federations import breast_village
from tests.servers.chromium import Browser, chromium, executable
from tests.servers.prefect_server import PrefectServer, wait_until
from tests.servers.serving import PATIENCE, Serving, add_settings, await_state

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(executable() is None, reason="needs Chromium; install what packages.txt names"),
]

SITES = ("hazel", "maple", "willow")
TRIES = 5


@pytest.fixture(scope="module")
def group(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Village]:
    """Three sites without a schedule, and a coordinator that starts them; each is served by a process of its own."""
    schedule = {"opening_minutes": 10, "answer_minutes": 10}
    village = breast_village(tmp_path_factory.mktemp("group"), SITES, trees=4, schedule=schedule)
    for name in SITES:
        add_settings(village.site_file(name), {"prefect": {"schedule": "none"}})
    add_settings(village.coordinator_file, {"start_sites": {name: f"site-round/{name}-breast" for name in SITES}})
    houses = [Serving(prefect_server, "site", village.site_file(name), village.folder) for name in SITES]
    houses.append(Serving(prefect_server, "coordinator", village.coordinator_file, village.folder))
    with ExitStack() as stack:
        for house in houses:
            house.launch()
            stack.callback(house.cut_power)
        for house in houses:
            house.await_words("is served")
        yield village


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("SPINNEY_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def clicked(prefect_server: PrefectServer, group: Village, browser: Browser, screenshots: Path) -> FlowRun:
    """The coordinator's run that was filled in and started by clicks, when it is over."""
    browser.visit(f"{prefect_server.ui}/v2/deployments", 1280)
    browser.follow(f"{COORDINATOR}-{group.study}")
    browser.click("button", "Run")
    browser.click("menuitem", "Custom run")
    browser.await_text("Which round. Empty: the next, or the one that was begun.")
    browser.open_tab("int")
    browser.fill("spinbutton", "*", "1")
    browser.photograph(screenshots / "form.png")
    submit(browser)
    with prefect_server.client() as client:
        known = client.read_deployment_by_name(f"coordinator-round/{COORDINATOR}-{group.study}")

        def asked_for() -> list[FlowRun]:
            runs = client.read_flow_runs()
            return [run for run in runs if run.deployment_id == known.id and run.parameters["run"].get("number") == 1]

        (run,) = wait_until(asked_for, PATIENCE)
    return await_state(run.id, lambda run: run.state.is_final())


def submit(browser: Browser) -> None:
    """As a person would: once more, if a busy server has answered with an error."""
    for _ in range(TRIES):
        browser.click("button", "Submit")
        wait_until(lambda: "/run?" not in browser.address or "Unknown error" in browser.text, PATIENCE)
        if "/run?" not in browser.address:
            return
        wait_until(lambda: "Unknown error" not in browser.text, PATIENCE)
    raise AssertionError(browser.text)


def test_the_ui_lists_the_deployments_of_all_houses(
    prefect_server: PrefectServer, group: Village, browser: Browser, screenshots: Path
):
    browser.visit(f"{prefect_server.ui}/v2/deployments?limit=50", 1280)
    for name in (*SITES, COORDINATOR):
        browser.await_text(f"{name}-{group.study}")
    browser.photograph(screenshots / "deployments.png")


def test_a_round_that_was_filled_in_and_started_by_clicks_completes(clicked: FlowRun):
    assert clicked.state.name == "Completed"
    assert clicked.name == "breast, round 1"


def test_the_coordinator_has_started_every_site_of_the_group(
    prefect_server: PrefectServer, clicked: FlowRun, group: Village
):
    with prefect_server.client() as client:
        for name in SITES:
            known = client.read_deployment_by_name(f"site-round/{name}-{group.study}")
            (run,) = [run for run in client.read_flow_runs() if run.deployment_id == known.id]
            assert await_state(run.id, lambda run: run.state.is_final()).state.name == "Completed"
            assert run.created >= clicked.created


def test_what_came_of_the_round_is_shown_with_the_run(
    prefect_server: PrefectServer, clicked: FlowRun, browser: Browser, screenshots: Path
):
    browser.visit(f"{prefect_server.ui}/v2/runs/flow-run/{clicked.id}", 1280)
    browser.open_tab("Artifacts")
    for words in ("breast-round", "Who took part, and who was absent.", "Seconds and bytes of every step."):
        browser.await_text(words)
    browser.photograph(screenshots / "artifacts.png")
    with prefect_server.client() as client:
        (sites,) = [
            one for one in client.read_artifacts() if (one.key, one.flow_run_id) == ("breast-sites", clicked.id)
        ]
    browser.visit(f"{prefect_server.ui}/v2/artifacts/artifact/{sites.id}", 1280)
    for name in SITES:
        browser.await_text(name)
    browser.photograph(screenshots / "sites.png")
    browser.visit(f"{prefect_server.ui}/v2/runs/flow-run/{clicked.id}", 1280)
    browser.open_tab("Task Runs")
    browser.await_text("ask 3 sites to grow")
    browser.photograph(screenshots / "steps.png")
