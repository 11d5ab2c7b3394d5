"""Scoring and watching as tasks: figures for people, and an event for whoever listens to alerts."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from spinney.scoring.monitor import Watch
from spinney.tasks.scores import BELOW_PROMISE, show_scores, show_watch
from tests.servers.prefect_server import wait_until
from tests.spinney.reports.reported import watch, wood

pytestmark = pytest.mark.usefixtures("prefect")
ASH = SimpleNamespace(name="ash")


def shown(seen: Watch, study: Any) -> None:
    @flow(name="watching")
    def watching() -> None:
        show_watch(ASH, study, seen)

    watching()


def alerts(study: str) -> list[dict[str, Any]]:
    """The alerts about a study's model that the server has by now."""
    asked = {"filter": {"event": {"name": [BELOW_PROMISE]}}}
    answer = httpx.post(f"{os.environ['PREFECT_API_URL']}/events/filter", json=asked)
    events = answer.raise_for_status().json()["events"]
    return [one for one in events if f".{study}." in one["resource"]["prefect.resource.id"]]


def artifact(key: str) -> str:
    with get_client(sync_client=True) as client:
        return max((one for one in client.read_artifacts() if one.key == key), key=lambda one: one.created).data


def test_a_champion_below_its_promise_is_an_event_about_that_model():
    seen = watch()
    assert seen.alerts
    shown(seen, wood())
    (event,) = wait_until(lambda: alerts("wood"), 30)
    assert event["resource"]["prefect.resource.id"] == "spinney.model.ash.wood.3"
    assert event["payload"] == {"alerts": list(seen.alerts), "wish": "a round"}
    assert "A round with new data is wished" in artifact("ash-wood-watch")


def test_a_champion_that_keeps_its_promise_is_shown_and_nobody_is_alerted():
    meadow = wood().model_copy(update={"name": "meadow"})
    seen = watch(0.005)
    shown(seen, meadow)
    shown(replace(seen, version="9", windows=()), meadow)
    assert "Too few outcomes are known to judge version 9" in artifact("ash-meadow-watch")
    assert artifact("ash-meadow-windows")
    shown(watch(), meadow.model_copy(update={"name": "copse"}))  # what is sent later arrives later
    assert wait_until(lambda: alerts("copse"), 30)
    assert alerts("meadow") == []


def test_what_was_scored_is_shown_in_counts():
    night = SimpleNamespace(site="ash", study=SimpleNamespace(name="wood"))
    result = {"model": "wood", "version": 3, "scored": 1200, "called": 300, "new": 40, "in the table": 1200}

    @flow(name="showing")
    def showing() -> None:
        show_scores(night, {**result, "new in the FHIR server": 0})

    showing()
    assert "1,200" in artifact("ash-wood-scores")
