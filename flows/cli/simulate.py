"""spinney simulate: would federating help us?"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.flows.cli.options import Offered
from spinney.plugins import ALGORITHMS

if TYPE_CHECKING:
    from spinney.rows.cohort import Cohort
    from spinney.study.study import Study
    from spinney.trial.simulate import Simulation

SECURE_SUMS = ["masked", "ring", "trusted-third-party"]
DISTANCES = ["euclidean", "manhattan", "minkowski"]

EXAMPLES = """\b
Examples:
  spinney simulate study.yaml --data tables/
  spinney simulate study.yaml --data tables/ --algorithm fedrf --json result.json
  spinney simulate study.yaml --data tables/ --clusters 2 --distance manhattan
"""


@click.command(epilog=EXAMPLES)
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of CSV or Parquet, one per site.")
@click.option("--algorithm", type=Offered(ALGORITHMS), help="Instead of the study's.")
@click.option("--secure-sum", type=click.Choice(SECURE_SUMS), help="Instead of the study's.")
@click.option("--clusters", type=click.IntRange(min=1), help="Let sites of a kind help each other: how many kinds.")
@click.option("--distance", type=click.Choice(DISTANCES), help="Between sites' characteristic vectors.")
@click.option("--preset", type=click.Choice(["spinney", "published"]), help="BOFRF as ours or as published.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Instead of the study's.")
@click.option("--pooled", is_flag=True, help="Also grow the forest on all rows that nobody may have in life.")
@click.option("--workers", type=click.IntRange(min=1), help="Sites that answer at once.  [default: all cores]")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, allow_dash=True), help="Write the result; - for stdout."
)
def simulate(
    study_file: Path, data: Path, pooled: bool, workers: int | None, json_file: Path | None, **changes: Any
) -> None:
    """Run a whole federation on a folder of tables, one file per site, and show what each site would gain.

    Nothing is sent anywhere: all sites live in this process. Choices are made on training rows and figures are measured
    on test rows. With a column such as `patient`, all rows of a patient stay in one part.
    """
    from spinney.configuration.study_file import read_study
    from spinney.connectors.tables import read_tables
    from spinney.trial.simulate import pooled_forest
    from spinney.trial.simulate import simulate as run

    if json_file is not None and not json_file.parent.is_dir():  # not after all the work
        raise click.BadParameter(f"{json_file.parent} is not a folder; make it first", param_hint="--json")
    study = changed(read_study(study_file), **changes)
    cohorts = {site: cohort_of(site, table, study) for site, table in read_tables(data).items()}
    for column in absent_everywhere(cohorts):
        click.echo(f"{column} is a column at no site, so no tree can ask it; mend its name in the study", err=True)
    at_once = workers or os.cpu_count() or 1
    with step_bar() as progress:
        result = run(study, cohorts, workers=at_once, budget=seconds_left, progress=progress)
    reference = pooled_figures(pooled_forest(study, cohorts, at_once), cohorts, study) if pooled else {}
    report = as_json(study, result, reference)
    if json_file is not None:
        text = json.dumps(report, indent=2, allow_nan=False) + "\n"
        click.echo(text, nl=False) if str(json_file) == "-" else json_file.write_text(text, encoding="utf-8")
    if json_file is None or str(json_file) != "-":
        show(study, report, result)


def absent_everywhere(cohorts: dict[str, Cohort]) -> list[str]:
    """Features of the study that no site has."""
    there = {
        column.feature.name
        for one in cohorts.values()
        for column, has in zip(one.columns, one.present, strict=True)
        if has
    }
    named = dict.fromkeys(column.feature.name for one in cohorts.values() for column in one.columns)
    return [name for name in named if name not in there]


def cohort_of(site: str, table: Any, study: Study) -> Cohort:
    """A site's table as rows of the study; what is wrong with it is said with the site's name."""
    from spinney.connectors.tables import patient_column
    from spinney.errors import CohortRejected
    from spinney.rows.cohort import cohort_from_frame

    whose = patient_column(table.columns)
    try:
        if whose is None:
            return cohort_from_frame(table, study)
        if nobody := int(table[whose].isna().sum()):
            raise CohortRejected(f"{whose} is known", nobody, "say whose rows these are, or take the column out")
        key = b"simulation %d" % study.split.seed
        return cohort_from_frame(table, study, table[whose].astype(str).tolist(), key)
    except CohortRejected as error:
        raise CohortRejected(f"{site}: {error.rule}", error.failed, error.advice) from None


def changed(study: Study, **changes: Any) -> Study:
    """The study with what the command line says instead."""
    from pydantic import ValidationError

    from spinney.configuration.mistakes import in_words
    from spinney.errors import StudyInvalid

    given = {name: value for name, value in changes.items() if value is not None}
    sections: dict[str, dict[str, Any]] = {}
    if "algorithm" in given and given["algorithm"] != study.algorithm.name:
        study = study.model_copy(update={"algorithm": _settings(given["algorithm"])})
    for option in ("clusters", "distance", "preset"):
        if option in given:
            if study.algorithm.name != "bofrf":
                raise StudyInvalid([f"--{option} belongs to the algorithm bofrf, and this is {study.algorithm.name}"])
            sections.setdefault("algorithm", {})[option] = given[option]
    if "secure_sum" in given:
        sections["privacy"] = {"secure_sum": given["secure_sum"]}
    if "seed" in given:
        sections["split"] = {"seed": given["seed"]}
    try:
        study = study.with_settings(**sections)
    except ValidationError as error:
        raise StudyInvalid([words for _, words in in_words(error, type(study), {})]) from None
    if "distance" in given and study.algorithm.clusters == 1:
        raise StudyInvalid(["--distance is between clusters of sites: add --clusters, 2 or more"])
    return study


def _settings(name: str) -> Any:
    return ALGORITHMS[name].settings()


def seconds_left(seconds: float) -> Callable[[], bool]:
    """Says whether a time budget is left."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


class step_bar:
    """A progress bar of the round's steps on a terminal, nothing elsewhere."""

    def __enter__(self) -> Callable[[str, int, int], None]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description:>8}"), BarColumn(), TextColumn("{task.completed}/{task.total} sites"))
        self._bar = Progress(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
        )
        self._bar.start()
        self._task = self._bar.add_task("join", total=None)
        return self._advance

    def _advance(self, step: str, done: int, asked: int) -> None:
        self._bar.update(self._task, description=step, completed=done, total=asked)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def pooled_figures(model: Any, cohorts: dict[str, Cohort], study: Study) -> dict[str, float | None]:
    """AUROC of the pooled forest on every site's test rows; a feature that a site doesn't have is missing there."""
    import numpy as np

    from spinney.choice.metrics import auroc
    from spinney.rows.parts import Part

    figures: dict[str, float | None] = {}
    for site, cohort in cohorts.items():
        test = cohort.rows(Part.TEST)
        enough = min(test.patients_by_class()) >= study.choice.fewest_test_patients
        figures[site] = auroc(test.y, model.votes(test.X, np.ones_like(test.present))) if enough else None
    return figures


def as_json(study: Study, result: Simulation, pooled: dict[str, float | None]) -> dict[str, Any]:
    """The whole result as plain data."""
    from spinney.choice.evidence import evidence_of

    sites = {}
    for site, outcome in result.outcomes.items():
        sites[site] = evidence_of(outcome)
        if site in pooled:
            sites[site]["auroc"]["pooled"] = pooled[site]
    return {
        "study": study.name,
        "study_digest": study.digest,
        "algorithm": study.algorithm.name,
        "secure_sum": study.privacy.secure_sum,
        "seed": study.split.seed,
        "model_digest": result.model_digest,
        "bytes_between_sites": result.parcel_bytes,
        "clusters": sorted({tuple(sorted(outcome.credit)) for outcome in result.outcomes.values()}),
        "left_out": dict(result.left_out),
        "sites": sites,
    }


def clustering(study: Study, clusters: list[tuple[str, ...]]) -> list[str]:
    """Who helped whom, where the study asks for clusters."""
    wanted = getattr(study.algorithm, "clusters", 1)
    lines = [f"cluster: {', '.join(members)}" for members in clusters] if wanted > 1 else []
    if wanted > 1 and len(clusters) < wanted:
        fewest = study.privacy.fewest_scorers
        lines.append(
            f"{len(clusters)} instead of {wanted} clusters: one with fewer than {fewest} sites joins its nearest"
        )
    return lines


def show(study: Study, report: dict[str, Any], result: Simulation) -> None:
    """The result for people."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from spinney.choice.personalise import DEFAULT_REASON

    console = Console()
    models = list(dict.fromkeys(name for site in report["sites"].values() for name in site["auroc"]))
    table = Table(
        title=f"{study.name}: {study.algorithm.name}, AUROC on test rows", box=box.SIMPLE_HEAD, title_justify="left"
    )
    table.add_column("site", no_wrap=True)
    for heading in ("rows", "positives", *models, "gain over local (95 %)"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("choice", no_wrap=True)
    for name, site in report["sites"].items():
        figures = ["" if value is None else f"{value:.3f}" for value in (site["auroc"].get(model) for model in models)]
        gain = site["gain"].get("auroc")
        shown = (
            ""
            if gain is None or site["choice"]["model"] == "local"
            else f"{gain['value']:+.3f} ({gain['low']:+.2f} to {gain['high']:+.2f})"
        )
        table.add_row(name, str(site["rows"]), str(site["positives"]), *figures, shown, site["choice"]["model"])
    wide = console.options.update(max_width=1000)
    console.width = max(console.width, console.measure(table, options=wide).maximum)  # a cut table tells nothing
    console.print(table)
    for name, site in report["sites"].items():
        for line in [site["choice"]["question"], *site["choice"]["notes"]]:
            if line:
                click.echo(f"{name}: {line}")
        if site["choice"]["reason"] != DEFAULT_REASON:
            click.echo(f"{name}: {site['choice']['reason']}")
    for line in clustering(study, report["clusters"]):
        click.echo(line)
    if study.privacy.warning:
        console.print(f"Know that with {study.privacy.warning}.", highlight=False)
    for name, reason in result.left_out.items():
        click.echo(f"{name} was left out: {reason}")
    size = f"{result.parcel_bytes / 1024:.0f} KiB of sealed parcels passed between sites"
    click.echo(f"model {result.model_digest[:16] or '(none in common)'}; {size}.")
