"""Automations of the house's own Prefect server: somebody is told of a night that failed or did not happen.

An alert holds names, a state and a link. Why a run failed stays in the house: an error's text may quote what it met.
Prefect delivers at least once; `id` is the same in every copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect.automations import AutomationCore, EventTrigger, Posture
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import CallWebhook, ChangeFlowRunState, SendNotification

from spinney.configuration.house import AlertSettings, secrets_for
from spinney.flows.running.mail_block import SpinneyMail
from spinney.flows.running.plan import ServedHouse, server

BEAT = "prefect.flow-run.heartbeat"
FAILED = {f"prefect.flow-run.{state}" for state in ("Failed", "Crashed", "TimedOut")}
QUIET = {f"prefect.flow-run.{state}" for state in ("Completed", "Cancelled", "Suspended", "Paused", "AwaitingRetry")}
RUNS = {"prefect.resource.id": "prefect.flow-run.*"}

OF_A_RUN = {
    "id": "{{ flow_run.id }}",
    "run": "{{ flow_run.name }}",
    "deployment": "{{ deployment.name }}",
    "state": "{{ flow_run.state.name }}",
    "link": "{{ flow_run|ui_url }}",
}


def set_up(house: ServedHouse, deployments: Mapping[str, UUID]) -> str:
    """Make the server's automations those of the settings; says how people are told. Twice is the same as once."""
    tell = _Receivers(house)
    lost = [ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message="its process was lost")]
    rounds = [one for name, one in deployments.items() if name.startswith(f"{house.role}-round/")]
    failed = tell("failed", "a night failed", OF_A_RUN)
    silence = f"no round has completed in {house.alerts.silent_hours:g} hours"
    silent = tell("silent", silence, {"id": "{{ firing.id }}"})
    wanted = [
        _automation(house, "a night failed", _failed(deployments.values()), failed),
        _automation(house, "no night", _silent(rounds, house.alerts), silent),
        _automation(house, "a lost run", _lost(deployments.values(), house.alerts), lost),
    ]
    with server() as client:
        for automation in wanted:
            _replace(client, automation)
    return tell.ways or f"nobody is told; write `alerts` into {house.file.name}"


class _Receivers:
    """The house's webhook and mailbox as saved blocks, and the actions that use them."""

    def __init__(self, house: ServedHouse) -> None:
        self._house, self._settings = house, house.alerts
        name = f"{house.role}-{house.name}".lower().replace("_", "-").replace(".", "-")
        address = self._settings.webhook
        if self._settings.webhook_env:
            (address,) = secrets_for("the alert's webhook", self._settings.webhook_env)
        self._hook = Webhook(method="POST", url=address).save(name, overwrite=True) if address else None
        mail = self._settings.mail
        self._mail = SpinneyMail.of(mail).save(name, overwrite=True) if mail else None

    @property
    def ways(self) -> str:
        return " and ".join(way for way, there in (("webhook", self._hook), ("e-mail", self._mail)) if there)

    def __call__(self, kind: str, words: str, facts: Mapping[str, str]) -> list[Any]:
        subject = f"Spinney, {self._house.role} {self._house.name}: {words}"
        actions: list[Any] = []
        if self._hook:
            payload = {"alert": kind, "role": self._house.role, "house": self._house.name, "words": words, **facts}
            actions.append(CallWebhook(block_document_id=self._hook, payload=json.dumps(payload)))
        if self._mail:
            lines = [
                subject,
                "",
                *(f"{name}: {value}" for name, value in facts.items()),
                "",
                "The reason is in Prefect.",
            ]
            actions.append(SendNotification(block_document_id=self._mail, subject=subject, body="\n".join(lines)))
        return actions


def _of(deployments: Iterable[UUID]) -> dict[str, Any]:
    """Events about these deployments: a shared server has other houses, too."""
    return {
        "prefect.resource.role": "deployment",
        "prefect.resource.id": [f"prefect.deployment.{one}" for one in deployments],
    }


def _failed(deployments: Iterable[UUID]) -> EventTrigger:
    return EventTrigger(
        expect=FAILED,
        match=RUNS,
        match_related=_of(deployments),
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
    )


def _silent(rounds: Iterable[UUID], alerts: AlertSettings) -> EventTrigger:
    return EventTrigger(
        expect={"prefect.flow-run.Completed"},
        match=RUNS,
        match_related=_of(rounds),
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(hours=alerts.silent_hours),
    )


def _lost(deployments: Iterable[UUID], alerts: AlertSettings) -> EventTrigger:
    """A run that was heard of and is no longer; one that waits for a steward has no process and is not lost."""
    return EventTrigger(
        after={BEAT},
        expect={BEAT} | FAILED | QUIET,
        match=RUNS,
        match_related=_of(deployments),
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=alerts.lost_seconds),
    )


def _automation(house: ServedHouse, what: str, trigger: EventTrigger, actions: list[Any]) -> AutomationCore:
    return AutomationCore(
        name=f"{house.role} {house.name}: {what}",
        description="Made by Spinney's deploy command, which replaces it.",
        tags=["spinney", house.tag],
        trigger=trigger,
        actions=actions,
    )


def _replace(client: SyncPrefectClient, wanted: AutomationCore) -> None:
    """One that is the same stays, so that its clock goes on; without anything to do it goes."""
    there = client.read_automations_by_name(wanted.name)
    same = [one for one in there if wanted.actions and _meaning(one) == _meaning(wanted)][:1]
    for other in there:
        if other not in same:
            client.delete_automation(other.id)
    if wanted.actions and not same:
        client.create_automation(wanted)


def _meaning(automation: AutomationCore) -> dict[str, Any]:
    plain = automation.model_dump(mode="json", include={"name", "trigger", "actions"})
    plain["trigger"].pop("id", None)
    for key in ("expect", "after", "for_each"):
        plain["trigger"][key] = sorted(plain["trigger"][key])
    return plain
