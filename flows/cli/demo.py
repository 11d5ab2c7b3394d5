"""spinney demo: made-up hospitals to try everything on."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def demo() -> None:
    """Make up data to try Spinney on."""


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
    from connectors.world.site import world_study, write_tables

    files = write_tables(out, sites, patients, seed)
    click.echo(f"{len(files)} hospitals in {out}: {', '.join(files)}")
    click.echo(f"Next: spinney study infer {out} --label {world_study().label.name} -o {out}/study.yaml")
