"""spinney model: the models in this site's registry."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.flows.cli.options import by_option, json_option, site_option, study_option, yes_option

if TYPE_CHECKING:
    from spinney.configuration.site import SiteSettings
    from spinney.connectors.mlflow import Registry, Version

CONTENTS = ("auroc", "auprc", "brier", "mcc")


@dataclass(frozen=True)
class OpenRegistry:
    """One study's models at one site."""

    site: SiteSettings
    study: str
    registry: Registry

    def decided(self, by: str, words: str, digest: str = "") -> None:
        """A line in the audit log: models are changed by people, and it stays known by whom."""
        from spinney.house.audit import Audit, AuditEntry

        entry = AuditEntry(direction="decided", kind="Model", peer=by, study=self.study, digest=digest, words=words)
        Audit(self.site.home / "audit.jsonl").append(entry, datetime.now(UTC))


def shelf(site_file: Path, study: str | None) -> OpenRegistry:
    """What a command works on."""
    from spinney.configuration.site import read_site
    from spinney.connectors.mlflow import Registry
    from spinney.house.approvals import the_study

    site = read_site(site_file)
    return OpenRegistry(site, study or the_study(site.home), Registry(site.home, site.registry))


@click.group()
def model() -> None:
    """List, compare, promote, roll back and export the models of this site.

    A version is named by its number or by champion, candidate or previous.
    """


@model.command("list", short_help="Show all versions.")
@site_option
@study_option
@json_option
def list_(site_file: Path, study: str | None, as_json: bool) -> None:
    """Show all versions, the newest first."""
    here = shelf(site_file, study)
    rows = [_row(version) for version in here.registry.versions(here.study)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        aliases = ", ".join(row["aliases"]) or "-"
        without = f", without {', '.join(row['without'])}" if row["without"] else ""
        click.echo(
            f"{row['version']:>4}  {aliases:<20} {row['registered']}  round {row['round']}, "
            f"{sum(row['trees'].values())} trees of {len(row['trees'])} houses{without}  {row['model'][:16]}"
        )
    if not rows:
        click.echo(f"no model of {here.study} yet: the first night registers one")


def _row(version: Version) -> dict[str, Any]:
    from spinney.connectors.mlflow.lineage import FULL

    trees = version.said("trees")
    return {
        "version": version.number,
        "aliases": list(version.aliases),
        "round": version.round,
        "registered": datetime.fromtimestamp(version.created / 1000, UTC).date().isoformat(),
        "model": version.model_digest,
        "study": version.said("study_digest"),
        "cohort": version.said("cohort_digest"),
        "trees": {} if trees in ("", FULL) else json.loads(trees),
        "without": json.loads(version.said("without") or "[]"),
    }


@model.command(short_help="Show one version: its card.")
@click.argument("which", default="champion")
@site_option
@study_option
@json_option
def show(which: str, site_file: Path, study: str | None, as_json: bool) -> None:
    """Show where a version comes from, why it was chosen, and how it did on test rows.

    On a terminal the card is drawn; elsewhere it is Markdown.
    """
    here = shelf(site_file, study)
    version = here.registry.version(here.study, which)
    if as_json:
        lineage = here.registry.lineage(version).model_dump(mode="json")
        click.echo(json.dumps({"lineage": lineage, "evidence": here.registry.evidence(version)}, indent=2))
        return
    card = here.registry.card(version)
    if not sys.stdout.isatty():
        click.echo(card, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(highlight=False).print(Markdown(card))


@model.command(short_help="Show two versions side by side.")
@click.argument("first", default="champion")
@click.argument("second", default="candidate")
@site_option
@study_option
@json_option
def compare(first: str, second: str, site_file: Path, study: str | None, as_json: bool) -> None:
    """Show the test figures of two versions. Each was measured on the test rows of its own night."""
    here = shelf(site_file, study)
    told = {}
    for which in (first, second):
        version = here.registry.version(here.study, which)
        evidence = here.registry.evidence(version)
        told[f"{which} ({version.number})" if not which.isdigit() else which] = {
            "version": version.number,
            "round": version.round,
            "test": evidence["test"],
            "choice": evidence["choice"]["model"],
            "trees": here.registry.lineage(version).trees,
        }
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    for name, one in told.items():
        houses = ", ".join(f"{house} {trees}" for house, trees in one["trees"].items())
        click.echo(f"{name}: round {one['round']}, {one['choice']}, trees: {houses}")
        figures = [
            f"{figure} {span['value']:.3f} ({span['low']:.3f} to {span['high']:.3f})"
            for figure in CONTENTS
            if (span := one["test"].get(figure)) and span["value"] is not None
        ]
        click.echo(f"  {', '.join(figures) or 'too few test patients for figures'}")


@model.command(short_help="Make a version the champion.")
@click.argument("number", type=click.IntRange(1))
@site_option
@study_option
@by_option
@json_option
def promote(number: int, site_file: Path, study: str | None, by: str, as_json: bool) -> None:
    """Use a version from now on; the one in use becomes `previous`."""
    here = shelf(site_file, study)
    _may_promote(here, here.registry.version(here.study, number))
    version = here.registry.promote(here.study, number)
    here.decided(by, f"Decided by {by}: {version} is in use from now on.", version.model_digest)
    _tell_champion(here, version, "is the champion", as_json)


def _tell_champion(here: OpenRegistry, version: Version, words: str, as_json: bool) -> None:
    facts = {"study": here.study, "champion": version.number, "model": version.model_digest}
    click.echo(json.dumps(facts, indent=2) if as_json else f"{version} {words}")


def _may_promote(here: OpenRegistry, version: Version) -> None:
    """Where a steward decides about models, or was asked about this one, nobody passes by."""
    from spinney.connectors.mlflow import LATE, PROMOTED
    from spinney.errors import SpinneyError
    from spinney.house.admission import REFUSED, WAITING
    from spinney.house.site_night import SiteNights

    nights = SiteNights(here.site, here.study)
    asked = (nights.result(version.round) or {}).get("admission") in (WAITING, REFUSED)
    manual = "manual" in (here.site.admission, nights.study.choice.admission)
    if (manual or asked) and version.said("settled") not in (PROMOTED, LATE):  # both had their yes
        raise SpinneyError(f"{version} has no steward's approval; get it first: spinney admission decide")


@model.command(short_help="Go back to the previous champion.")
@site_option
@study_option
@by_option
@json_option
def rollback(site_file: Path, study: str | None, by: str, as_json: bool) -> None:
    """Use the previous champion again. A second time: take that back."""
    here = shelf(site_file, study)
    version = here.registry.rollback(here.study)
    here.decided(by, f"Decided by {by}: back to {version}.", version.model_digest)
    _tell_champion(here, version, "is the champion again", as_json)


@model.command(short_help="Take a site's trees out of all models.")
@click.argument("site")
@site_option
@study_option
@by_option
@yes_option
def withdraw(site: str, site_file: Path, study: str | None, by: str, yes: bool) -> None:
    """Go on without a site's trees, and delete the versions that hold them.

    With this site's own name: tell all others to do so with this site's trees, in a signed document. They obey in their
    next night. This site keeps its own trees in its own models.
    """
    here = shelf(site_file, study)
    if site == here.site.name:
        _take_back(here, by, yes)
        return
    if not yes:
        click.confirm(f"Delete every version of {here.study} that holds trees of {site}?", abort=True)
    made = here.registry.withdraw(here.study, site)
    here.decided(by, f"Decided by {by}: the trees of {site} left all models of {here.study}.")
    for version in made:
        click.echo(f"{version} goes on without {site} ({', '.join(version.aliases)})")
    if not made:
        click.echo(f"no model in use goes on without {site}: none held its trees, or none held others")


def _take_back(here: OpenRegistry, by: str, yes: bool) -> None:
    from spinney.errors import SpinneyError
    from spinney.house.approvals import Approvals
    from spinney.house.envelopes import Rounds
    from spinney.house.keys import KeyRing
    from spinney.house.withdrawal import publish_withdrawal

    if here.site.exchange is None:
        raise SpinneyError("site.yaml has no `exchange`, so nobody can be told; write where the houses' mailbox is")
    approvals = Approvals(here.site.home, here.study)
    newest = Rounds(here.site.home, here.study, here.site.name).newest
    if not yes:
        click.confirm(f"Tell all houses to delete the trees of {here.site.name} up to round {newest}?", abort=True)
    identity = KeyRing(here.site.home).identity(approvals.roster.keys.get(here.site.name))
    with here.site.exchange.open() as exchange:
        document = publish_withdrawal(approvals, exchange, here.site.name, newest, identity)
    here.decided(by, f"Decided by {by}: {here.site.name} takes its trees back.", document.digest)
    click.echo(f"told: trees of {here.site.name} of rounds up to {document.round} leave the others' models")


@model.command(short_help="Write a version as ONNX with its card.")
@click.argument("which", default="champion")
@site_option
@study_option
@click.option("--output", "-o", type=click.Path(path_type=Path), default="model", show_default=True, help="Folder.")
@click.option("--onnx/--no-onnx", default=True, show_default=True, help="ONNX needs spinney[onnx].")
@click.option("--fair", is_flag=True, help="Also records for research infrastructures.")
def export(which: str, site_file: Path, study: str | None, output: Path, onnx: bool, fair: bool) -> None:
    """Write model.onnx (compared with our own probabilities first), card.md and card.jsonld (FAIR4ML).

    With --fair also research-study.json, library.json and provenance.json (FHIR R4) and tripod-ai.md, a checklist that
    is filled as far as the evidence goes. What only people know comes from `about` in site.yaml, or stays open.

    Copies that leave the registry are not reached by a withdrawal: whoever exports has to delete them.
    """
    here = shelf(site_file, study)
    version = here.registry.version(here.study, which)
    output.mkdir(parents=True, exist_ok=True)
    (output / "card.md").write_text(here.registry.card(version), encoding="utf-8")
    metadata = {**here.registry.fair(version), **_about(here.site)}
    (output / "card.jsonld").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
    if fair:
        _write_records(here, version, metadata, output)
    if onnx:
        from spinney.connectors.mlflow.graph import write_onnx

        largest = write_onnx(here.registry.model(version), output / "model.onnx")
        click.echo(f"model.onnx differs from our probabilities by at most {largest:.0e} on made-up rows")
    click.echo(f"{version} is in {output}")


def _about(site: SiteSettings) -> dict[str, Any]:
    """What site.yaml says of the house, in the words of catalogues."""
    about = site.about
    shared = {"@type": "Organization", "name": about.organisation, **({"url": about.url} if about.url else {})}
    return {
        **({"fair4ml:sharedBy": shared} if about.organisation else {}),
        **({"license": about.licence} if about.licence else {}),
    }


def _write_records(here: OpenRegistry, version: Version, metadata: dict[str, Any], output: Path) -> None:
    from spinney.errors import SpinneyError
    from spinney.house.approvals import Approvals
    from spinney.reports.fhir_records import fhir_records
    from spinney.reports.tripod import checklist

    study, lineage = Approvals(here.site.home, here.study).study, here.registry.lineage(version)
    if study.digest != lineage.study_digest:
        raise SpinneyError(f"{version} is of a {study.name} that is not approved any more; export without --fair")
    day = metadata["dateCreated"]
    for name, resource in fhir_records(study, lineage, metadata, day, here.site.about.organisation).items():
        (output / name).write_text(json.dumps(resource, indent=2) + "\n", encoding="utf-8")
    told = checklist(study, lineage, here.registry.evidence(version))
    (output / "tripod-ai.md").write_text(told, encoding="utf-8")
