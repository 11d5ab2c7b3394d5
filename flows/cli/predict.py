"""spinney predict: probabilities for the rows of a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from spinney.flows.cli.options import json_option, site_option

MODEL = re.compile(r"^(?P<study>[A-Za-z][A-Za-z0-9_.-]*)(?:[@/](?P<which>[a-z]+|[0-9]+))?$")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", "wanted", required=True, help="NAME@champion, or NAME/3 for version 3.")
@site_option
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, allow_dash=True), default="-", help="CSV file; - for stdout."
)
@json_option
def predict(file: Path, wanted: str, site_file: Path, output: Path, as_json: bool) -> None:
    """Write a probability and a decision for every row of a CSV or Parquet file.

    Columns are found by name. A column that the file doesn't have counts as missing, unless the study has trees
    abstain; a column called patient is copied to the result.
    """
    from spinney.configuration.site import read_site
    from spinney.connectors.mlflow import Registry
    from spinney.connectors.mlflow.loader import Scorer
    from spinney.connectors.tables import patient_column, read_table

    named = MODEL.match(wanted)
    if named is None:
        raise click.BadParameter("write NAME@champion, or NAME/3 for version 3", param_hint="--model")
    site = read_site(site_file)
    registry = Registry(site.home, site.registry)
    version = registry.version(named["study"], named["which"] or "champion")
    table = read_table(file)
    scored = Scorer(registry.model(version)).predict(table)
    whose = patient_column(table.columns)
    if whose is not None:
        scored.insert(0, "patient", table[whose])
    scored["model"] = str(version)
    text = json.dumps(scored.to_dict(orient="records"), indent=2) + "\n" if as_json else scored.to_csv(index=False)
    click.echo(text, nl=False) if str(output) == "-" else output.write_text(text, encoding="utf-8")
