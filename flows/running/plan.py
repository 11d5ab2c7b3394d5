"""The deployments of a house: the YAML of its role, filled in from its settings and its approved studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import DeploymentApplyError, RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.schedules import Cron
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType
from prefect.utilities.templating import apply_values
from pydantic import ValidationError

from spinney.configuration.house import AlertSettings, PrefectSettings, read_coordinator
from spinney.configuration.site import read_site
from spinney.errors import SpinneyError
from spinney.house.approvals import Approvals, approved_studies, the_study
from spinney.study.study import Study
from spinney.tasks.at_once import at_once

Role = Literal["site", "coordinator"]


class PrefectAway(SpinneyError):
    """No Prefect server answers, or it refuses; the message says what to do."""


@dataclass(frozen=True)
class ServedHouse:
    """What Prefect has to know of a house."""

    role: Role
    name: str
    file: Path
    home: Path
    alerts: AlertSettings
    prefect: PrefectSettings
    sections: frozenset[str]  # of its settings file that are filled in

    @classmethod
    def read(cls, role: Role, path: Path) -> ServedHouse:
        """From site.yaml or coordinator.yaml."""
        settings = read_site(path) if role == "site" else read_coordinator(path)
        filled = frozenset(name for name, value in settings if value is not None)
        return cls(role, settings.name, path.resolve(), settings.home, settings.alerts, settings.prefect, filled)

    @property
    def tag(self) -> str:
        """Every deployment and run of the house has it."""
        return f"{self.role}:{self.name}"

    @property
    def studies(self) -> list[Study]:
        """Those that somebody here has approved; NotApproved if there are none."""
        return [Approvals(self.home, name).study for name in approved_studies(self.home) or [the_study(self.home)]]


def planned(house: ServedHouse) -> list[RunnerDeployment]:
    """Every deployment of the house, one set per study. Who has paused one in the UI finds it paused."""
    templates = yaml.safe_load((files("spinney.deployments") / f"{house.role}.yaml").read_text(encoding="utf-8"))[
        "deployments"
    ]
    deployments = []
    for study in house.studies:
        known = {
            "house": house.name,
            "study": study.name,
            "tag": house.tag,
            "cron": study.schedule.cron,
            "timezone": study.schedule.timezone,
        }
        wanted = [words for words in templates if words.get("only_with", "name") in house.sections]
        deployments += [_deployment(apply_values(words, known), house) for words in wanted]
    with server() as client:
        for deployment in deployments:
            _rest_as_before(client, deployment)
    return deployments


def schedules_of(deployment: RunnerDeployment) -> list[str]:
    """When Prefect starts it by itself: cron and time zone of each schedule. A plan has no schedules of other kinds."""
    schedules = [each.schedule for each in deployment.schedules or []]
    return [f"{one.cron} {one.timezone}" for one in schedules if isinstance(one, CronSchedule)]


def apply_plan(house: ServedHouse, deployments: Sequence[RunnerDeployment]) -> dict[str, UUID]:
    """Make the server's deployments those of the plan, and delete the house's others. Twice is the same as once."""
    applied = {}
    for deployment in deployments:
        try:
            applied[deployment.full_name] = at_once(deployment.apply())
        except DeploymentApplyError as error:
            raise PrefectAway(f"Prefect refuses {deployment.full_name}: {error}") from None
    _clear(house, {applied[one.full_name] for one in deployments if one.schedules}, set(applied.values()))
    return applied


def _clear(house: ServedHouse, scheduled: set[UUID], wanted: set[UUID]) -> None:
    """Delete what the plan no longer has: applying only adds."""
    with server() as client:
        for known in client.read_deployments():
            if house.tag in known.tags and known.id not in wanted:
                client.delete_deployment(known.id)
            elif known.id in wanted - scheduled:
                for schedule in known.schedules:
                    client.delete_deployment_schedule(known.id, schedule.id)


def server() -> SyncPrefectClient:
    """The house's Prefect server, if it answers."""
    url = get_current_settings().api.url
    if not url:
        raise PrefectAway(
            "PREFECT_API_URL is not set; write where this house's Prefect server is, such as http://127.0.0.1:4200/api"
        )
    client = get_client(sync_client=True)
    with client:
        problem = client.api_healthcheck()
    if problem:
        raise PrefectAway(f"no Prefect server answers at {url} ({type(problem).__name__}); start it and try again")
    return get_client(sync_client=True)


def _deployment(words: dict[str, Any], house: ServedHouse) -> RunnerDeployment:
    flow: Flow[..., Any] = load_flow_from_entrypoint(words["entrypoint"])
    made = flow.to_deployment(
        words["name"],
        description=words["description"],
        tags=words["tags"],
        parameters=words["parameters"],
        schedules=[_schedule(**one) for one in words.get("schedules", []) if house.prefect.schedule == "study"],
        concurrency_limit=ConcurrencyLimitConfig.model_validate(words["concurrency_limit"]),
        work_pool_name=house.prefect.pool or None,
        version=version("spinney"),
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    return at_once(made)


def _schedule(cron: str, timezone: str, slug: str) -> Any:
    try:
        return Cron(cron, timezone=timezone, slug=slug)
    except (ValidationError, ValueError):
        raise PrefectAway(f"Prefect can't read the study's schedule {cron!r} in {timezone!r}; mend the study") from None


def _rest_as_before(client: SyncPrefectClient, deployment: RunnerDeployment) -> None:
    try:
        known = client.read_deployment_by_name(deployment.full_name)
    except ObjectNotFound:
        return
    deployment.paused = known.paused
    resting = {schedule.slug for schedule in known.schedules if not schedule.active}
    for schedule in deployment.schedules or []:
        schedule.active = schedule.slug not in resting
