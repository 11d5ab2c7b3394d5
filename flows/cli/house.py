"""spinney house: the home of this house, as a whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from spinney.flows.cli.keys import home_option
from spinney.flows.cli.options import json_option


@click.group()
def house() -> None:
    """Look after everything that this house keeps."""


@house.command(short_help="Read everything, and name what is damaged.")
@home_option
@click.option(
    "--registry", "registry_of", type=click.Path(path_type=Path), help="Site's file, if its registry is elsewhere."
)
@json_option
def verify(home: Path, registry_of: Path | None, as_json: bool) -> None:
    """Read everything that this house keeps: keys, papers, audit log, cohorts, models, outbox.

    What is not what was written is named, with what that costs and the command that mends it. Exit code 2 then.
    """
    from spinney.configuration.house import RegistrySettings
    from spinney.configuration.site import read_site
    from spinney.doctor.verify import verify_home

    done = verify_home(home, read_site(registry_of).registry if registry_of else RegistrySettings())
    if as_json:
        damaged = [{**asdict(one), "path": str(one.path)} for one in done.damaged]
        click.echo(json.dumps({"read": done.read, "damaged": damaged}, indent=2))
    else:
        click.echo("read: " + ", ".join(f"{count} {kind}" for kind, count in done.read.items()))
        for one in done.damaged:
            click.echo(f"\n{one.path}\n  {one.what}\n  costs: {one.costs}\n  mend:  {one.mend}")
        click.echo("" if done.damaged else "everything is what was written")
    if done.damaged:
        raise click.exceptions.Exit(2)
