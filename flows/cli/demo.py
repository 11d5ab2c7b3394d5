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
    """Write one CSV file per made-up hospital."""
    from connectors.demo import LABEL, write_demo

    files = write_demo(out, sites, patients, seed)
    click.echo(f"{len(files)} hospitals in {out}: {', '.join(files)}")
    click.echo(f"Next: spinney study infer {out} --label {LABEL} -o {out}/study.yaml")
