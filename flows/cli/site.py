"""spinney site: what a hospital's engineer does: say where the data are, look at them, forget old cohorts."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.flows.cli.deploy import site_deploy, site_serve
from spinney.flows.cli.options import Offered, json_option, site_option
from spinney.flows.cli.site_join import approve, approve_roster, join, studies
from spinney.plugins import SOURCES

if TYPE_CHECKING:
    from spinney.connectors.sources import Question
    from spinney.study.study import Study

Answers = dict[str, str | None]


@click.group()
def site() -> None:
    """Say where a site's data are, look at them, forget old cohorts; join studies and approve them."""


for command in (join, approve, approve_roster, studies, site_deploy, site_serve):
    site.add_command(command)


class InitCommand(click.Command):
    """Its options include what the sources ask; these are imported for this command only."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own options and those of the sources."""
        *own, last = super().get_params(ctx)  # --help is the last
        return [*own, *_options_of_sources(), last]


def _options_of_sources() -> list[click.Option]:
    """One option per question, however many kinds of source ask it."""
    asked: dict[str, list[tuple[str, Question]]] = {}
    for kind, settings in SOURCES.items():
        for ask in settings.asks:
            asked.setdefault(ask.name, []).append((kind, ask))
    return [_option(name, asking) for name, asking in asked.items()]


def _option(name: str, asking: list[tuple[str, Question]]) -> click.Option:
    choices = asking[0][1].choices
    words = f"{', '.join(kind for kind, _ in asking)}: {asking[0][1].words}."
    kind: Any = click.Choice(choices) if choices else str
    return click.Option([f"--{name.replace('_', '-')}"], type=kind, help=words)


@site.command(cls=InitCommand, short_help="Write a first site.yaml.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default="site.yaml", show_default=True)
@click.option("--name", prompt="Name of the site in the study's roster", help="The site's name.")
@click.option("--home", default="home", show_default=True, help="Private folder for cohorts, next to the file.")
@click.option("--timezone", default="UTC", show_default=True, help="Of times without a zone, such as Europe/Berlin.")
@click.option("--exchange", help="Mailbox between the houses: a folder, s3://... or sftp://...; for rounds.")
@click.option("--kind", type=Offered(SOURCES), prompt="Where are the data", help="What the source is.")
def init(output: Path, **answers: str | None) -> None:
    """Ask a few questions and write a commented site.yaml. What an option says is not asked.

    For kind sql you complete the queries in it. Patients: patient, and birth, sex, died. Events, one query for each
    resource type: patient, time, and where you have them code, until, recorded, value, comparator, text, unit, status,
    class, encounter, parent, discharge, event, updated.
    """
    from spinney.configuration.site_init import write_site

    write_site(output, _completed(answers))
    click.echo(f"{output} is written; read it, complete it and try it: spinney site check STUDY --site {output}")


def _completed(answers: Answers) -> dict[str, str]:
    """The answers, after asking what this kind of source needs."""
    known = {name: answer for name, answer in answers.items() if answer is not None}
    for ask in SOURCES[known["kind"]].asks:
        if ask.name not in known and ask.when(known):
            choices = click.Choice(ask.choices) if ask.choices else None
            known[ask.name] = click.prompt(ask.words, default=ask.default, type=choices)
    return known


@site.command(short_help="Pull, validate and show a cohort; send nothing.")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@site_option
@click.option("--sample", help="Only index events of the last 90d (or another time), or from a day on: 2024-01-31.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def check(study_file: Path, site_file: Path, sample: str | None, as_json: bool) -> None:
    """Connect, pull the cohort, validate it, and show what it looks like and what would leave the house.

    Nothing is sent. The cohort stays in the site's vault, and a page for the site's staff in its data-docs folder. A
    cohort that is refused is shown as far as it came, with all notes.
    """
    from spinney.cohort.as_of import clock
    from spinney.configuration.site import read_site
    from spinney.configuration.study_file import read_study
    from spinney.flows.cli.site_show import as_data, look, show

    study, site = read_study(study_file), read_site(site_file)
    looked = look(_sampled(study, sample, clock(site.as_of, site.timezone)) if sample else study, site)
    if as_json:
        click.echo(json.dumps(as_data(looked), indent=2, allow_nan=False))
    else:
        show(looked)
    if looked.refused is not None:
        raise looked.refused


@site.command(short_help="Attack the trees that this site would lend; send nothing.")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@site_option
@click.option("--seconds", default=120.0, show_default=True, help="No shadow forest is begun after so long.")
@json_option
def attack(study_file: Path, site_file: Path, seconds: float, as_json: bool) -> None:
    """Say what this site's trees would tell somebody who asks whether a patient trained them.

    Looks at the newest cohort in the vault that has passed its checks; nothing is sent. Who trains is told from those
    who are kept aside, by as many shadow forests as the time allows. An advantage is twice the area above one half.
    """
    from spinney.configuration.site import read_site
    from spinney.configuration.study_file import read_study
    from spinney.flows.cli.site_attack import attack_own_trees

    told = attack_own_trees(read_study(study_file), read_site(site_file), seconds)
    click.echo(json.dumps(told.data) if as_json else "\n".join(told.lines))


def _sampled(study: Study, sample: str, now: datetime) -> Study:
    from spinney.errors import StudyInvalid

    if study.cohort is None:
        raise StudyInvalid(["--sample needs a study with a `cohort`; a finished table is read as a whole"])
    since = max(_first_day(sample, now), study.cohort.since or date.min)  # a sample is never more than the study
    return study.with_settings(cohort={"since": since.isoformat()})


def _first_day(sample: str, now: datetime) -> date:
    from spinney.study.definition import length

    try:
        return date.fromisoformat(sample)
    except ValueError:
        pass
    try:
        return now.date() - length(sample)
    except (ValueError, OverflowError):
        advice = f"{sample!r} is neither a time such as 90d nor a day such as 2024-01-31"
        raise click.BadParameter(advice, param_hint="--sample") from None


@site.command(short_help="Delete old cohorts from the vault.")
@site_option
@click.option("--older-than", required=True, help="Age from which cohorts are deleted, such as 30d or 12w.")
@json_option
def forget(site_file: Path, older_than: str, as_json: bool) -> None:
    """Delete cohorts and predictions that are older than this, and what broken pulls left behind."""
    from spinney.configuration.site import read_site
    from spinney.scoring.predictions import forget_predictions

    site, age = read_site(site_file), _age(older_than)
    forgotten = site.vault.forget(age)
    files = forget_predictions(site.home, age)
    if as_json:
        click.echo(json.dumps({"cohorts": forgotten.cohorts, "predictions": files, "busy": list(forgotten.busy)}))
        return
    click.echo(f"{forgotten.cohorts} cohorts forgotten")
    if files:
        click.echo(f"{files} files of predictions forgotten")
    for study in forgotten.busy:
        click.echo(f"{study}: a pull is running, so its cohorts were left alone; try again later", err=True)


@site.command(short_help="Print the JSON schema for editors.")
def schema() -> None:
    """Print the JSON schema of site.yaml, for editors that complete and check YAML."""
    from spinney.configuration.site import SiteSettings

    click.echo(json.dumps(SiteSettings.model_json_schema(), indent=2))


@site.command("catalogue", short_help="Describe this site's cohorts for a data catalogue.")
@site_option
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, allow_dash=True), default="-", help="File; - for stdout."
)
def catalogue_(site_file: Path, output: Path) -> None:
    """Write a catalogue of the cohorts of all approved studies, in the words of DCAT-AP (JSON-LD).

    Counts are those that were told to the other houses when an epoch opened: rounded, never of few. What only people
    know comes from `about` in site.yaml.
    """
    from spinney.configuration.site import read_site
    from spinney.house.approvals import Approvals, approved_studies
    from spinney.reports.catalogue import catalogue, told_counts

    here = read_site(site_file)
    studies = [Approvals(here.home, name).study for name in approved_studies(here.home)]
    cohorts = [(study, told_counts(here.home, study)) for study in studies]
    text = json.dumps(catalogue(here.name, here.about, cohorts), indent=2) + "\n"
    click.echo(text, nl=False) if str(output) == "-" else output.write_text(text, encoding="utf-8")


def _age(duration: str) -> timedelta:
    from spinney.study.definition import length

    try:
        return length(duration)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--older-than") from None
