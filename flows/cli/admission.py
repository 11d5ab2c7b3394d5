"""spinney admission: a steward's yes or no to the use of a model at this site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.flows.cli.options import site_option

if TYPE_CHECKING:
    from spinney.house.keys import Identity
    from spinney.house.site_night import SiteNights

answer_option = click.option("--yes/--no", "approve", required=True, help="May the model be used?")
steward_home = click.option(
    "--steward-home",
    type=click.Path(path_type=Path),
    envvar="SPINNEY_STEWARD_HOME",
    required=True,
    help="The steward's own folder, made by spinney keys new --home FOLDER. Also SPINNEY_STEWARD_HOME.",
)


@click.group()
def admission() -> None:
    """Decide whether a federated model may be used at this site, with the steward's own signature.

    With `admission: manual` in site.yaml or in the study, tonight's model waits as a candidate. Sign here and paste the
    signature into the suspended run in the Prefect UI, or decide here at once.
    """


@admission.command("list", short_help="Show what waits for a decision.")
@site_option
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def waiting(site_file: Path, as_json: bool) -> None:
    """Show the models that wait for a steward."""
    from spinney.configuration.site import read_site
    from spinney.house.admission import WAITING
    from spinney.house.approvals import approved_studies

    rows = []
    for study in approved_studies(read_site(site_file).home):
        nights = _nights(site_file, study)
        results = [result for result in nights.results() if result.get("admission") == WAITING]
        rows += [{"study": study, **{key: one[key] for key in ("round", "version", "choice")}} for one in results]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        choice = row["choice"]
        click.echo(
            f"{row['study']} round {row['round']}: version {row['version']}, {choice['trees']} trees of "
            f"{choice['sites']} sites, {choice['name']} ({choice['reason']}). {choice['gain']}"
        )
    if not rows:
        click.echo("nothing waits for a decision")


@admission.command(short_help="Print a steward's signature.")
@click.argument("study")
@click.argument("number", metavar="ROUND", type=click.IntRange(1))
@answer_option
@steward_home
@site_option
def sign(study: str, number: int, approve: bool, steward_home: Path, site_file: Path) -> None:
    """Print the signature under yes or no to the model of a round, to paste into the suspended run."""
    from spinney.house.admission import admission_of

    nights = _nights(site_file, study)
    click.echo(admission_of(nights.study, _result(nights, number)).sign(_steward(steward_home), approve))


@admission.command(short_help="Decide at once.")
@click.argument("study")
@click.argument("number", metavar="ROUND", type=click.IntRange(1))
@answer_option
@steward_home
@click.option("--steward", required=True, help="The steward's name, as site.yaml lists it.")
@site_option
def decide(study: str, number: int, approve: bool, steward_home: Path, steward: str, site_file: Path) -> None:
    """Sign and follow: with --yes the model becomes the champion, with --no it stays a candidate.

    A yes doesn't put an older round's model in the place of a newer one that is in use or waits for a decision.
    """
    from spinney.house.admission import admission_of, settle

    nights = _nights(site_file, study)
    result = _result(nights, number)
    signature = admission_of(nights.study, result).sign(_steward(steward_home), approve)
    settled = settle(nights, result, steward, approve, signature)
    click.echo(f"version {settled['version']} of {study}: {settled['admission']}")
    if settled["note"]:
        click.echo(settled["note"])


def _nights(site_file: Path, study: str) -> SiteNights:
    from spinney.configuration.site import read_site
    from spinney.house.site_night import SiteNights

    return SiteNights(read_site(site_file), study)


def _result(nights: SiteNights, number: int) -> dict[str, Any]:
    result = nights.result(number)
    if result is None or "version" not in result:
        raise click.UsageError(f"round {number} of {nights.study.name} has no model here; see: spinney admission list")
    return result


def _steward(home: Path) -> Identity:
    from spinney.house.keys import KeyRing

    return KeyRing(home).identity()
