"""spinney simulate: would federating help us?"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from spinney.flows.cli.options import HowMany, Offered
from spinney.plugins import ALGORITHMS

if TYPE_CHECKING:
    from spinney.choice.verdict import GainVerdict
    from spinney.rows.cohort import Cohort
    from spinney.study.study import Study
    from spinney.trial.simulate import Simulation

SECURE_SUMS = ["masked", "ring", "trusted-third-party"]
DISTANCES = ["euclidean", "manhattan", "minkowski"]

EXAMPLES = """\b
Examples:
  spinney simulate study.yaml --data tables/
  spinney simulate study.yaml --data tables/ --repeats 50 --html answer.html
  spinney simulate study.yaml --data tables/ --algorithm fedrf --json result.json
  spinney simulate study.yaml --data tables/ --leave-one-site-out
  spinney simulate study.yaml --data tables/ --clusters 2 --distance manhattan
"""
SECONDS, FEWEST, MOST = 10.0, 5, 50  # of repeats, where nobody says how many


@click.command(epilog=EXAMPLES)
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of CSV or Parquet, one per site.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help=f"Splits of the patients.  [default: as many as fit {SECONDS:g} s, at least {FEWEST}]",
)
@click.option("--algorithm", type=Offered(ALGORITHMS), help="Instead of the study's.")
@click.option("--secure-sum", type=click.Choice(SECURE_SUMS), help="Instead of the study's.")
@click.option("--clusters", type=HowMany(), help="Let sites of a kind help each other: how many kinds, or auto.")
@click.option("--distance", type=click.Choice(DISTANCES), help="Between sites' characteristic vectors.")
@click.option("--preset", type=click.Choice(["spinney", "published"]), help="BOFRF as ours or as published.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Instead of the study's.")
@click.option("--pooled", is_flag=True, help="Also grow the forest on all rows that nobody may have in life.")
@click.option("--leave-one-site-out", is_flag=True, help="Also: what would a hospital get that brings nothing?")
@click.option("--subsets", is_flag=True, help="Also: the gain with fewer sites, over groups of every size.")
@click.option("--trees", "by_tree", is_flag=True, help="Also: the gain with fewer and more trees of each site.")
@click.option("--workers", type=click.IntRange(min=1), help="Sites that answer at once.  [default: all cores]")
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write the answer as a page with pictures.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, allow_dash=True), help="Write the result; - for stdout."
)
def simulate(
    study_file: Path,
    data: Path,
    repeats: int | None,
    pooled: bool,
    leave_one_site_out: bool,
    subsets: bool,
    by_tree: bool,
    workers: int | None,
    html_file: Path | None,
    json_file: Path | None,
    **changes: Any,
) -> None:
    """Would federating help? Run a whole federation on a folder of tables, one file per site, and say what each gains.

    Nothing is sent anywhere: all sites live in this process. Choices are made on training rows and figures are measured
    on test rows. The patients are split and the trees grown again and again, because one split is a throw of dice; a
    gain's interval is over patients and splits. With a column such as `patient`, all rows of a patient stay together.
    """
    from spinney.configuration.study_file import read_study
    from spinney.connectors.tables import read_tables
    from spinney.flows.cli.simulate_show import show
    from spinney.library.tables import absent_everywhere, cohort_of
    from spinney.trial.summary import report_of

    for option, file in (("--json", json_file), ("--html", html_file)):
        if file is not None and not file.parent.is_dir():  # not after all the work
            raise click.BadParameter(f"{file.parent} is not a folder; make it first", param_hint=option)
    study = changed(read_study(study_file), **changes)
    tables = read_tables(data)

    def draw(again: Study) -> dict[str, Cohort]:
        return {site: cohort_of(site, table, again) for site, table in tables.items()}

    for column in absent_everywhere(draw(study)):
        click.echo(f"{column} is a column at no site, so no tree can ask it; mend its name in the study", err=True)
    at_once = workers or os.cpu_count() or 1
    how: dict[str, Any] = {"workers": at_once, "budget": seconds_left}
    also: dict[str, Any] = {}
    with step_bar() as bar:
        results = ran(study, draw, repeats, bar, how)
        few = min(len(results), FEWEST)
        if pooled:
            also["pooled"] = pooled_over(study, draw, few, at_once)
        if leave_one_site_out:
            also["newcomers"] = also_newcomers(study, draw, few, bar, how)
        if subsets:
            from spinney.trial.curves import by_sites

            also["by_sites"] = by_sites(study, draw, few, bar.doing, **how)
        if by_tree:
            from spinney.trial.curves import by_trees

            also["by_trees"] = by_trees(study, draw, few, bar.doing, **how)
    report = report_of(study, results, also)
    if json_file is not None:
        text = json.dumps(report, indent=2, allow_nan=False) + "\n"
        click.echo(text, nl=False) if str(json_file) == "-" else json_file.write_text(text, encoding="utf-8")
    if html_file is not None:
        from spinney.reports.simulation import simulation_page

        html_file.write_text(simulation_page(report), encoding="utf-8")
    if json_file is None or str(json_file) != "-":
        show(study, report)
        if html_file is not None:
            click.echo(f"with pictures: {html_file}")


def ran(study: Study, draw: Any, wanted: int | None, bar: step_bar, how: dict[str, Any]) -> list[Simulation]:
    """All repeats; the first one's gains are shown while the others run."""
    from spinney.trial.repeats import repeats
    from spinney.trial.summary import verdicts_of

    began = time.monotonic()
    results: list[Simulation] = []

    def more(done: int) -> bool:
        if wanted is not None:
            return done < wanted
        took = (time.monotonic() - began) / max(done, 1)
        return done < FEWEST or (done < MOST and took * (done + 1) <= SECONDS)

    for result in repeats(study, draw, more, progress=bar.advance, **how):
        results.append(result)
        bar.first(verdicts_of(results[:1])) if len(results) == 1 else bar.split(len(results))
    return results


def pooled_over(study: Study, draw: Any, repeats: int, workers: int) -> dict[str, float | None]:
    """Mean AUROC of the pooled forest on every site's test rows."""
    from spinney.trial.repeats import reseeded
    from spinney.trial.simulate import pooled_forest
    from spinney.trial.summary import mean_of

    found = []
    for repeat in range(repeats):
        again = reseeded(study, repeat)
        cohorts = draw(again)
        found.append(pooled_figures(pooled_forest(again, cohorts, workers), cohorts, again))
    return dict(mean_of(found))


def also_newcomers(study: Study, draw: Any, repeats: int, bar: step_bar, how: dict[str, Any]) -> dict[str, Any]:
    """What a hospital that brings nothing would get, by site."""
    from spinney.choice.evidence import plain
    from spinney.trial.newcomer import without_each

    return dict(plain(without_each(study, draw, repeats, lambda site: bar.doing(f"without {site}"), **how)))


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
    """A progress bar of the round's steps on a terminal, with what the first split says; nothing elsewhere."""

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description:>16}"), BarColumn(), TextColumn("{task.completed}/{task.total} sites"))
        self._bar = Progress(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
        )
        self._bar.start()
        self._task = self._bar.add_task("join", total=None)
        self._where = ""
        return self

    def advance(self, step: str, done: int, asked: int) -> None:
        """So many sites have done a step."""
        self._bar.update(self._task, description=f"{self._where}{step}", completed=done, total=asked)

    def doing(self, what: str) -> None:
        """Something that has no steps of its own."""
        self._bar.update(self._task, description=what, completed=0, total=None)

    def split(self, number: int) -> None:
        """So many splits are done."""
        self._where = f"split {number + 1}: "

    def first(self, verdicts: Mapping[str, GainVerdict]) -> None:
        """What the first split says, at once; more splits follow."""
        if not self._bar.disable:
            told = ", ".join(f"{site} {verdict.gain.value:+.3f}" for site, verdict in verdicts.items())
            self._bar.console.print(f"gain over local in the first split: {told}", soft_wrap=True)
        self.split(1)

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
