"""spinney site|coordinator deploy and serve: how Prefect runs a house's flows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.flows.cli.options import coordinator_option, json_option, site_option

if TYPE_CHECKING:
    from spinney.flows.running.plan import Role, ServedHouse


@click.command("deploy", short_help="Tell Prefect what this site runs and when, and whom to alert.")
@site_option
@json_option
def site_deploy(site_file: Path, as_json: bool) -> None:
    """Apply this site's deployments, schedule and alerts to its Prefect server (PREFECT_API_URL).

    Run it again whenever site.yaml or an approved study has changed; nothing is doubled.
    """
    _deploy(_house("site", site_file), as_json)


@click.command("serve", short_help="Run what is due at this site; never ends.")
@site_option
def site_serve(site_file: Path) -> None:
    """Apply deployments and alerts, tidy up after a power cut, then run what is due until somebody stops it."""
    _serve(_house("site", site_file))


@click.command("deploy", short_help="Tell Prefect what the coordinator runs and when, and whom to alert.")
@coordinator_option
@json_option
def coordinator_deploy(coordinator_file: Path, as_json: bool) -> None:
    """Apply the coordinator's deployments, schedule and alerts to its Prefect server (PREFECT_API_URL).

    Run it again whenever coordinator.yaml or a study has changed; nothing is doubled.
    """
    _deploy(_house("coordinator", coordinator_file), as_json)


@click.command("serve", short_help="Run the rounds that are due; never ends.")
@coordinator_option
def coordinator_serve(coordinator_file: Path) -> None:
    """Apply deployments and alerts, tidy up after a power cut, then run what is due until somebody stops it."""
    _serve(_house("coordinator", coordinator_file))


def _house(role: Role, path: Path) -> ServedHouse:
    from spinney.flows.running.plan import ServedHouse

    return ServedHouse.read(role, path)


def _deploy(house: ServedHouse, as_json: bool) -> None:
    from spinney.flows.running.alerts import set_up
    from spinney.flows.running.plan import apply_plan, planned, schedules_of
    from spinney.flows.served import VARIABLE

    deployments = planned(house)
    applied = apply_plan(house, deployments)
    alerts = set_up(house, applied)
    schedules = {deployment.full_name: schedules_of(deployment) for deployment in deployments}
    if as_json:
        click.echo(json.dumps({"deployments": schedules, "alerts": str(alerts)}, indent=2))
        return
    for name, schedule in schedules.items():
        click.echo(f"{name}: {', '.join(schedule) or 'no schedule'}")
    click.echo(f"alerts: {alerts}")
    if house.prefect.pool:
        served = json.dumps({house.role: [str(house.file)]})
        click.echo(f"The pool's workers have to know where {house.name} is; start them with {VARIABLE}='{served}'")
    else:
        click.echo(f"A process has to run them: spinney {house.role} serve --{house.role} {house.file}")


def _serve(house: ServedHouse) -> None:
    from spinney.flows.running.serve import serve

    serve(house, click.echo)
