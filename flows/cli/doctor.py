"""spinney doctor: is this house fit for the night?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.flows.cli.options import json_option

if TYPE_CHECKING:
    from spinney.configuration.house import CoordinatorSettings
    from spinney.configuration.site import SiteSettings
    from spinney.doctor.findings import Finding

COLOURS = {"ok": "green", "warning": "yellow", "wrong": "red"}


@click.command(
    epilog="""\b
Examples:
  spinney doctor
  spinney doctor --coordinator coordinator.yaml
  spinney doctor --json | jq '.findings[] | select(.state != "ok")'
"""
)
@click.option("--site", "site_file", type=click.Path(path_type=Path), help="Site's file; site.yaml if it is here.")
@click.option(
    "--coordinator",
    "coordinator_file",
    type=click.Path(path_type=Path),
    help="Coordinator's file; coordinator.yaml if it is here and no site.yaml.",
)
@click.option("--least-gib", type=click.FloatRange(0), default=2.0, show_default=True, help="Free disk space to want.")
@json_option
@click.pass_context
def doctor(
    ctx: click.Context, site_file: Path | None, coordinator_file: Path | None, least_gib: float, as_json: bool
) -> None:
    """Look at everything that a night needs, one line each with what to do.

    Python and packages, the home folder, keys and disk, Prefect and who may ask it, the exchange and who may write
    there, the data source, the registry and who may change it, and the clock. On the exchange a trial message is
    written under this house's name and deleted; nothing else is changed. Exit code 2 if something is wrong; warnings
    alone are 0.
    """
    if site_file and coordinator_file:
        raise click.UsageError("one house at a time: --site or --coordinator")
    findings = []
    for finding in _findings(site_file, coordinator_file, least_gib):
        findings.append(finding)
        if not as_json:
            click.echo(
                f"{click.style(f'{finding.state:<8}', COLOURS[finding.state])} {finding.check:<13} {finding.words}"
            )
    fit = all(finding.state != "wrong" for finding in findings)
    if as_json:
        click.echo(json.dumps({"fit": fit, "findings": [asdict(finding) for finding in findings]}, indent=2))
    if not fit:
        ctx.exit(2)


def _findings(site_file: Path | None, coordinator_file: Path | None, least_gib: float) -> Iterator[Finding]:
    from spinney.configuration.house import read_coordinator
    from spinney.configuration.site import read_site
    from spinney.doctor.findings import Finding, check_machine
    from spinney.doctor.reach import examine
    from spinney.errors import StudyInvalid

    yield from check_machine()
    if not site_file and not coordinator_file:
        site_file, coordinator_file = _here()
    house: SiteSettings | CoordinatorSettings
    try:
        if site_file:
            house = read_site(site_file)
        elif coordinator_file:
            house = read_coordinator(coordinator_file)
        else:
            advice = "no site.yaml or coordinator.yaml here; make one: spinney site init"
            yield Finding("settings", "warning", advice)
            return
    except StudyInvalid as error:
        yield Finding("settings", "wrong", "; ".join(error.mistakes))
        return
    yield Finding("settings", "ok", f"{site_file or coordinator_file}, {house.name}")
    yield from examine(house, _prefect_url(), least_gib)


def _here() -> tuple[Path | None, Path | None]:
    site, coordinator = Path("site.yaml"), Path("coordinator.yaml")
    return (site, None) if site.exists() else (None, coordinator if coordinator.exists() else None)


def _prefect_url() -> str:
    """From the environment or from Prefect's own profile."""
    if "PREFECT_API_URL" in os.environ:
        return os.environ["PREFECT_API_URL"]
    from prefect.settings import get_current_settings

    return get_current_settings().api.url or ""
