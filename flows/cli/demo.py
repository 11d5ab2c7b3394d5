"""spinney demo: made-up hospitals to try everything on, and a whole night of them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click


@click.group()
def demo() -> None:
    """Make up hospitals to try Spinney on."""


@demo.command()
@click.option("--sites", type=click.IntRange(2, 200), default=5, show_default=True, help="Number of hospitals.")
@click.option(
    "--patients",
    type=click.IntRange(1, 10_000_000),
    default=3000,
    show_default=True,
    help="In all of them, but at least 60 in each.",
)
@click.option("--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder for the files.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The same seed, the same files.")
def data(sites: int, patients: int, out: Path, seed: int) -> None:
    """Write one finished table per made-up hospital: patients with heart failure, a row per stay."""
    from spinney.demo.site import world_study, write_tables

    files = write_tables(out, sites, patients, seed)
    click.echo(f"{len(files)} hospitals in {out}: {', '.join(files)}")
    click.echo(f"Next: spinney study infer {out} --label {world_study().label.name} -o {out}/study.yaml")


@demo.command(short_help="A whole night of four hospitals.")
@click.option("--night", type=click.IntRange(1, 60), default=1, show_default=True, help="Every night knows a day more.")
@click.option("--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder of the world.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def night(night: int, out: Path, as_json: bool) -> None:
    """Let four made-up hospitals and a coordinator run a whole night under one Prefect server.

    The hospitals have their data in SQLite, behind a FHIR server, in PostgreSQL and as FHIR files. Everything is in one
    folder, and nothing runs afterwards. A night that was interrupted goes on where it stopped; one that is done is
    shown.
    """
    from spinney.flows.cli.demo_show import NightProgress, gather_night, show
    from spinney.flows.demo.night import run_night
    from spinney.flows.demo.setting import World

    world = World(out.resolve())
    done = world.is_done(night)
    seconds = None
    if not done:
        with NightProgress(world, quiet=as_json) as progress, terminated_politely():
            seconds = run_night(world, night, progress.tell, progress.show)
    told = gather_night(world, night, seconds)
    if as_json:
        click.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        show(told, already=done)


@contextmanager
def terminated_politely() -> Iterator[None]:
    """A request to end the process ends it as Ctrl-C does: everything that was started is stopped first."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
