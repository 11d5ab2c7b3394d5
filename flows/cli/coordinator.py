"""spinney coordinator: found a federation, invite sites, admit and dismiss them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.flows.cli.deploy import coordinator_deploy, coordinator_serve
from spinney.flows.cli.options import by_option, coordinator_option, given, json_option, study_option, yes_option

if TYPE_CHECKING:
    from spinney.configuration.house import CoordinatorSettings
    from spinney.house.approvals import Approvals
    from spinney.house.roster import Roster


@click.group()
def coordinator() -> None:
    """Found a federation, invite sites, admit and dismiss them."""


for command in (coordinator_deploy, coordinator_serve):
    coordinator.add_command(command)


@coordinator.command(short_help="Write coordinator.yaml and found a federation.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default="coordinator.yaml", show_default=True)
@click.option("--name", prompt="Name of the coordinator in the roster", help="The coordinator's name.")
@click.option("--home", default="home", show_default=True, help="Private folder for key and papers, next to the file.")
@click.option("--exchange", prompt="Where is the exchange (a folder, s3://... or sftp://...)", help="Its address.")
@click.option("--study", type=click.Path(path_type=Path), prompt="File of the study", help="The study to found.")
@by_option
def init(output: Path, name: str, home: str, exchange: str, study: Path, by: str) -> None:
    """Ask a few questions, write a commented coordinator.yaml, make the key, and found the study's roster.

    What an option says is not asked. The exchange has to be there.
    """
    from spinney.configuration.coordinator_init import write_coordinator
    from spinney.configuration.study_file import read_study
    from spinney.house.keys import KeyRing, fingerprint

    found = read_study(study)
    settings = write_coordinator(output, name, home, exchange)
    ring = KeyRing(settings.home)
    identity = ring.identity() if ring.all() else ring.create()
    click.echo(f"{output} is written.\n{name} signs with the key {fingerprint(identity.public)}.")
    _found(settings, found.name, study, by)
    click.echo(f"Next: spinney coordinator invite SITE{given('--coordinator', output, 'coordinator.yaml')}")


@coordinator.command(short_help="Print the JSON schema for editors.")
def schema() -> None:
    """Print the JSON schema of coordinator.yaml, for editors that complete and check YAML."""
    from spinney.configuration.house import CoordinatorSettings

    click.echo(json.dumps(CoordinatorSettings.model_json_schema(), indent=2))


@coordinator.command(short_help="Pin a study, new or changed.")
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@coordinator_option
@by_option
@yes_option
def approve(study: Path, coordinator_file: Path, by: str, yes: bool) -> None:
    """Pin the study in the file STUDY: a further one, or a changed one, whose changes are shown.

    Sites have to approve a changed study, too: send them the file, or invite them again.
    """
    from spinney.configuration.house import read_coordinator
    from spinney.configuration.study_file import read_study
    from spinney.flows.cli.site_join import show_changes
    from spinney.house.approvals import Approvals

    settings, proposed = read_coordinator(coordinator_file), read_study(study)
    approvals = Approvals(settings.home, proposed.name)
    if approvals.approval is not None and approvals.approval.digest != proposed.digest:
        show_changes(proposed, approvals)
        yes or click.confirm("Shall rounds run with it from now on?", abort=True)
    _found(settings, proposed.name, study, by)


def _found(settings: CoordinatorSettings, name: str, study: Path, by: str) -> None:
    from spinney.house.approvals import Approvals
    from spinney.house.joining import found_study

    with settings.exchange.open() as exchange:
        pinned = found_study(Approvals(settings.home, name), exchange, settings.name, study, by)
    click.echo(f"{pinned.name} is pinned, digest {pinned.digest}")


@coordinator.command(short_help="Write an invite for a site.")
@click.argument("site")
@coordinator_option
@study_option
@click.option("--exchange", help="Address of the exchange as the site sees it; the coordinator's if not given.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="File; invite-SITE.json if not given.")
def invite(site: str, coordinator_file: Path, study: str | None, exchange: str | None, output: Path | None) -> None:
    """Write an invite for SITE, with the study in it, signed. How to reach the exchange is told on another way."""
    from spinney.house.joining import write_invite
    from spinney.house.keys import fingerprint
    from spinney.house.roster import write_document

    settings, approvals = _papers(coordinator_file, study)
    invited = write_invite(approvals, site, exchange or settings.exchange.url)
    output = output or Path(f"invite-{site}.json")
    write_document(invited, output)
    click.echo(f"{output} invites {site} to {approvals.name}; {settings.name} signed it with the key")
    click.echo(f"  {fingerprint(bytes.fromhex(invited.key))}\nNext: send it, and read these digits out by telephone.")


@coordinator.command(short_help="Admit a site that answered its invite.")
@click.argument("file", type=click.Path(path_type=Path))
@coordinator_option
@by_option
@yes_option
def admit(file: Path, coordinator_file: Path, by: str, yes: bool) -> None:
    """Admit the site whose answer is in FILE, and publish the next roster.

    Sites that take part already go on with the roster before until all of them have confirmed the newcomer, at most
    for a week.
    """
    from spinney.house.joining import admitted, newest_of
    from spinney.house.keys import fingerprint
    from spinney.house.roster import Joining, read_document

    joining = read_document(file, Joining)
    settings, approvals = _papers(coordinator_file, joining.study)
    roster = admitted(approvals, joining)
    if newest_of(approvals).members.get(joining.site) == joining.key:
        click.echo(f"{joining.site} is admitted already, with this key")
        return
    click.echo(
        f"{joining.site} wants to join {approvals.name} with the key\n  {fingerprint(bytes.fromhex(joining.key))}"
    )
    yes or click.confirm(f"Has {joining.site} read these digits out by telephone?", abort=True)
    _publish(settings, approvals, roster, f"{joining.site} is admitted", by)


@coordinator.command(short_help="Take a site off the roster.")
@click.argument("site")
@coordinator_option
@study_option
@by_option
@yes_option
def dismiss(site: str, coordinator_file: Path, study: str | None, by: str, yes: bool) -> None:
    """Publish a roster without SITE. It takes effect with the next round."""
    from spinney.house import roster as documents
    from spinney.house.joining import newest_of, signing

    settings, approvals = _papers(coordinator_file, study)
    roster = documents.dismiss(newest_of(approvals), site, signing(approvals))
    yes or click.confirm(f"Take {site} off the roster of {approvals.name}?", abort=True)
    _publish(settings, approvals, roster, f"{site} is dismissed", by)


@coordinator.command(short_help="Put a member's new key on the roster.")
@click.argument("file", type=click.Path(path_type=Path))
@coordinator_option
@by_option
def rotate(file: Path, coordinator_file: Path, by: str) -> None:
    """Put the new key of the rotation in FILE on the roster, a site's or the coordinator's own.

    The old key has signed it, so nobody has to be asked. `spinney keys rotate` writes such a file.
    """
    from spinney.configuration.house import read_coordinator
    from spinney.house.approvals import Approvals
    from spinney.house.joining import rotated_everywhere
    from spinney.house.roster import Rotation, read_document

    settings = read_coordinator(coordinator_file)
    for study, (owner, roster) in rotated_everywhere(settings.home, read_document(file, Rotation)).items():
        _publish(settings, Approvals(settings.home, study), roster, f"{owner} has a new key", by)


def _publish(settings: CoordinatorSettings, approvals: Approvals, roster: Roster, what: str, by: str) -> None:
    from spinney.house.joining import change_roster
    from spinney.house.renewal import effective_roster, waiting_for

    with settings.exchange.open() as exchange:
        published = change_roster(approvals, exchange, roster, what, by)
        in_force = effective_roster(approvals, exchange)
        absent = [] if in_force == published else waiting_for(approvals, exchange, published)
    click.echo(f"{what}: version {published.version} of the roster of {approvals.name} is published")
    if absent:
        click.echo(f"Rounds run under version {in_force.version}, for a week at most, until it is approved by:")
        click.echo(f"  {', '.join(absent)}")


@coordinator.command(short_help="Show the roster and who has approved it.")
@coordinator_option
@study_option
@json_option
def roster(coordinator_file: Path, study: str | None, as_json: bool) -> None:
    """Show the newest roster, which version is in force, and which sites have approved which."""
    from spinney.house.joining import newest_of
    from spinney.house.renewal import effective_roster, has_approved

    settings, approvals = _papers(coordinator_file, study)
    with settings.exchange.open() as exchange:
        in_force = effective_roster(approvals, exchange)
        newest = newest_of(approvals)
        shown = {one.version: one for one in (in_force, newest)}
        approved = {
            version: [site for site in one.sites if has_approved(approvals, exchange, one, site)]
            for version, one in shown.items()
        }
    if as_json:
        facts = {"study": approvals.name, "version": newest.version, "in_force": in_force.version}
        keys = {"members": dict(newest.members), "fingerprints": newest.fingerprints}
        click.echo(json.dumps({**facts, **keys, "fingerprint": newest.fingerprint, "approved": approved}, indent=2))
        return
    click.echo(f"Roster of {approvals.name}, version {newest.version}; in force: version {in_force.version}.")
    for name, digits in newest.fingerprints.items():
        click.echo(f"  {name:<20} {digits}   {_role(name, newest, approved)}")
    click.echo(f"  {'the whole roster':<20} {newest.fingerprint}")


def _role(name: str, roster: Roster, approved: dict[int, list[str]]) -> str:
    if name == roster.coordinator:
        return "coordinator"
    versions = [str(version) for version, sites in approved.items() if name in sites]
    return f"approved version {' and '.join(versions)}" if versions else "has yet to approve"


def _papers(coordinator_file: Path, study: str | None) -> tuple[CoordinatorSettings, Approvals]:
    from spinney.configuration.house import read_coordinator
    from spinney.house.approvals import Approvals, the_study

    settings = read_coordinator(coordinator_file)
    return settings, Approvals(settings.home, study or the_study(settings.home))
