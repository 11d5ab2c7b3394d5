"""spinney up, spinney down: the demo's world, kept running."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spinney.flows.cli.options import yes_option

folder_option = click.option(
    "--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder of the made-up world."
)


@click.command(short_help="Keep the demo's world running, to click through it.")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@yes_option
@click.pass_context
def up(ctx: click.Context, out: Path, as_json: bool, yes: bool) -> None:
    """Keep the made-up world running: Prefect's UI, all houses' flows on their schedule, a hospital's MLflow.

    Run it twice and you see the same world. Before it makes one in a folder that you name, it asks.
    `spinney down` ends everything.
    """
    from spinney.flows.demo import kept
    from spinney.flows.demo.setting import World

    chosen = ctx.get_parameter_source("out") is not click.core.ParameterSource.DEFAULT
    if chosen and not (yes or out.exists()):
        click.confirm(f"{out} is not there. Make a new world in it?", abort=True, err=True)
    told = kept.keep_up(World(out.resolve()), lambda words: click.echo(words, err=True))
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"Prefect    {told['prefect']}      runs, deployments and schedules of all houses")
    click.echo(f"MLflow     {told['mlflow']}      the registry of the first hospital")
    click.echo(
        f"The hospitals know what they know by night {told['night']}. To end everything: spinney down --out {out}"
    )


@click.command(short_help="End the demo's world.")
@folder_option
def down(out: Path) -> None:
    """End everything that `spinney up` has started; the world's folder stays."""
    from spinney.flows.demo import kept
    from spinney.flows.demo.setting import World

    ended = kept.take_down(World(out.resolve()))
    click.echo("everything has ended" if ended else f"nothing is up in {out}")
