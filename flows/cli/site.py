"""spinney site: what a hospital's engineer does: say where the data are, look at them, forget old cohorts."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.flows.cli.deploy import site_deploy, site_serve
from spinney.flows.cli.options import json_option, site_option
from spinney.flows.cli.site_join import approve, approve_roster, join, studies

if TYPE_CHECKING:
    from spinney.study.study import Study

KINDS = ["files", "sql", "fhir-rest", "fhir-bulk"]
AUTHS = ["none", "basic", "bearer", "smart-backend"]
Answers = dict[str, str | None]


@click.group()
def site() -> None:
    """Say where a site's data are, look at them, forget old cohorts; join studies and approve them."""


for command in (join, approve, approve_roster, studies, site_deploy, site_serve):
    site.add_command(command)


@site.command(short_help="Write a first site.yaml.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default="site.yaml", show_default=True)
@click.option("--name", prompt="Name of the site in the study's roster", help="The site's name.")
@click.option("--home", default="home", show_default=True, help="Private folder for cohorts, next to the file.")
@click.option("--timezone", default="UTC", show_default=True, help="Of times without a zone, such as Europe/Berlin.")
@click.option("--exchange", help="Mailbox between the houses: a folder, s3://... or sftp://...; for rounds.")
@click.option("--kind", type=click.Choice(KINDS), prompt="Where are the data", help="What the source is.")
@click.option("--path", help="files: folder with FHIR resources.")
@click.option("--url", help="sql: address without a password, such as postgresql+psycopg://reader@db/his.")
@click.option("--base-url", help="fhir-*: address of the server's FHIR endpoint.")
@click.option("--auth", type=click.Choice(AUTHS), help="fhir-*: how the server knows you.")
@click.option("--user", help="User name (basic) or client id (smart-backend).")
@click.option("--secret-env", help="Environment variable that holds the password, token or key.")
def init(output: Path, **answers: str | None) -> None:
    """Ask a few questions and write a commented site.yaml. What an option says is not asked."""
    from spinney.configuration.site_init import write_site

    _complete(answers)
    write_site(output, {key: value for key, value in answers.items() if value is not None})
    click.echo(f"{output} is written; read it, complete it and try it: spinney site check STUDY --site {output}")


def _complete(answers: Answers) -> None:
    """Ask what this kind of source needs."""
    if answers["kind"] == "files":
        _ask(answers, "path", "Folder with FHIR resources")
    elif answers["kind"] == "sql":
        _ask(answers, "url", "Address of the database, without a password")
        _ask(answers, "secret_env", "Environment variable with the password (empty: none)", default="")
    else:
        _ask(answers, "base_url", "Address of the FHIR endpoint")
        _ask(answers, "auth", "How the server knows you", default="none", choices=AUTHS)
        if answers["auth"] in ("basic", "smart-backend"):
            _ask(answers, "user", "User name or client id")
        if answers["auth"] != "none":
            _ask(answers, "secret_env", "Environment variable with the password, token or key")


def _ask(answers: Answers, name: str, words: str, default: str | None = None, choices: list[str] | None = None) -> None:
    if answers[name] is None:
        answers[name] = click.prompt(words, default=default, type=click.Choice(choices) if choices else str)


@site.command(short_help="Pull, validate and show a cohort; send nothing.")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@site_option
@click.option("--sample", help="Only index events of the last 90d (or another time), or from a day on: 2024-01-31.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_context
def check(ctx: click.Context, study_file: Path, site_file: Path, sample: str | None, as_json: bool) -> None:
    """Connect, pull the cohort, validate it, and show what it looks like and what would leave the house.

    Nothing is sent. The cohort stays in the site's vault, and a page for the site's staff in its data-docs folder.
    """
    from spinney.configuration.site import read_site
    from spinney.configuration.study_file import read_study
    from spinney.flows.cli.site_show import as_data, look, show

    study = read_study(study_file)
    looked = look(_sampled(study, sample) if sample else study, read_site(site_file))
    if as_json:
        click.echo(json.dumps(as_data(looked), indent=2, allow_nan=False))
        if looked.checked.quality.failures("critical"):
            ctx.exit(2)
    else:
        show(looked)
        looked.checked.quality.require()


def _sampled(study: Study, sample: str) -> Study:
    from spinney.errors import StudyInvalid

    if study.cohort is None:
        raise StudyInvalid(["--sample needs a study with a `cohort`; a finished table is read as a whole"])
    since = max(_first_day(sample), study.cohort.since or date.min)  # a sample is never more than the study
    return study.with_settings(cohort={"since": since.isoformat()})


def _first_day(sample: str) -> date:
    from spinney.study.definition import length

    try:
        return date.fromisoformat(sample)
    except ValueError:
        pass
    try:
        return datetime.now(UTC).date() - length(sample)
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


def _age(duration: str) -> timedelta:
    from spinney.study.definition import length

    try:
        return length(duration)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--older-than") from None
