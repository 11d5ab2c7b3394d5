"""spinney site join, approve, approve-roster and studies: what people at a hospital decide about a study."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.flows.cli.options import by_option, given, json_option, site_option, study_option, yes_option

if TYPE_CHECKING:
    from spinney.configuration.site import SiteSettings
    from spinney.connectors.exchange import Exchange
    from spinney.house.approvals import Approvals
    from spinney.house.roster import Roster
    from spinney.study.study import Study


@click.command(short_help="Answer a coordinator's invite.")
@click.argument("file", type=click.Path(path_type=Path))
@site_option
@click.option("--output", "-o", type=click.Path(path_type=Path), default="joining.json", show_default=True)
def join(file: Path, site_file: Path, output: Path) -> None:
    """Answer the invite in FILE: pin the coordinator's key, and write an answer that this house's key signs.

    The house's key is made if there is none. Nothing is sent, and nothing runs before the study is approved.
    """
    from spinney.configuration.site import read_site
    from spinney.house.joining import answer_invite
    from spinney.house.keys import fingerprint
    from spinney.house.roster import Invite, read_document, write_document

    site, invited = read_site(site_file), read_document(file, Invite)
    joining = answer_invite(site.home, site.name, invited)
    write_document(joining, output)
    click.echo(f"{site.name} answers the invite of {invited.coordinator} to {invited.study}.")
    click.echo(f"  {invited.coordinator:<20} {fingerprint(bytes.fromhex(invited.key))}   compare by telephone")
    click.echo(f"  {site.name:<20} {fingerprint(bytes.fromhex(joining.key))}   read it out")
    if site.exchange is None:
        click.echo(f"Write into {site_file} where the mailbox is, for instance: exchange: {{url: {invited.exchange}}}")
    click.echo(f"Next: spinney site approve {invited.study}{given('--site', site_file, 'site.yaml')}")
    click.echo(f"Then send {output} to {invited.coordinator}.")


@click.command(short_help="Read a study and allow it to run here.")
@click.argument("study", metavar="STUDY")
@site_option
@by_option
@yes_option
def approve(study: str, site_file: Path, by: str, yes: bool) -> None:
    """Show what STUDY would send out of this house, ask, and pin its digest.

    STUDY is the name of a study that this house was invited to, or a file. A changed study is refused until somebody
    approves it again here; what has changed is shown.
    """
    from spinney.configuration.site import read_site
    from spinney.configuration.study_file import read_study
    from spinney.house.approvals import Approvals

    site = read_site(site_file)
    file = _study_file(site.home, study)
    proposed = read_study(file)
    approvals = Approvals(site.home, proposed.name)
    if _is_approved(approvals, proposed):
        click.echo(f"{proposed.name} is approved here already, digest {proposed.digest}")
        return
    show_study(proposed, approvals)
    yes or click.confirm(f"May {proposed.name} run in this house?", abort=True)
    approvals.approve_study(file, by)
    click.echo(f"{proposed.name} is approved, digest {proposed.digest}")


def _study_file(home: Path, study: str) -> Path:
    from spinney.base import is_file_name
    from spinney.house.approvals import Approvals, known_in

    if Path(study).is_file() or not is_file_name(study) or study not in known_in(home):
        return Path(study)
    proposed = Approvals(home, study).proposed
    return proposed if proposed.exists() else Path(study)


def _is_approved(approvals: Approvals, proposed: Study) -> bool:
    from spinney.house.approvals import NotApproved

    try:
        return approvals.study.digest == proposed.digest
    except NotApproved:
        return False


def show_study(study: Study, approvals: Approvals) -> None:
    """For the person who has to say yes."""
    from spinney.flows.cli.site_show import what_leaves
    from spinney.study.settings import fewest_to_lend

    title = f"{study.name}, version {study.version}"
    click.echo(f"{title}: {study.description}" if study.description else title)
    for what, words in (("purpose", study.purpose), ("legal basis", study.legal_basis), ("permit", study.permit or "")):
        if words:
            click.echo(click.wrap_text(f"{what}: {words}", 110, initial_indent="  ", subsequent_indent="    "))
    click.echo(f"  outcome: {study.label.name}")
    variables = f"variables: {', '.join(feature.name for feature in study.features)}"
    click.echo(click.wrap_text(variables, 110, initial_indent="  ", subsequent_indent="    "))
    click.echo("What leaves this house in every round, each message with a line in the audit log:")
    for line in what_leaves(study):
        click.echo(f"  {line}")
    click.echo(
        f"With fewer than {study.privacy.smallest_cohort} training patients this house stays out by itself, and with "
        f"fewer than {fewest_to_lend(study.lent_leaf)} it lends no trees."
    )
    if study.privacy.warning:
        click.echo(f"Know that with {study.privacy.warning}.")
    show_changes(study, approvals)
    click.echo(f"digest {study.digest}")


def show_changes(study: Study, approvals: Approvals) -> None:
    """Against what was approved before, if there is something."""
    from spinney.configuration.study_changes import study_changes
    from spinney.house.approvals import NotApproved

    try:
        before = approvals.approval
    except NotApproved:
        before = None
    if before is not None:
        click.echo(f"Changed since it was approved on {before.time[:10]}:")
        changed = study_changes(before.settings, study.model_dump(mode="json"))
        for line in changed or ["no setting; the kept text was damaged"]:
            click.echo(f"  {line}")


@click.command("approve-roster", short_help="Confirm the other houses' names and keys.")
@site_option
@study_option
@click.option("--afresh", is_flag=True, help="Compare with the invite only: a house has lost its key and joined again.")
@by_option
@yes_option
def approve_roster(site_file: Path, study: str | None, afresh: bool, by: str, yes: bool) -> None:
    """Fetch the newest roster, show names and fingerprints to be confirmed by telephone, and ask.

    Otherwise a coordinator could surround this house with puppets. Departures and keys that the old key has signed
    for are accepted by the nightly run without asking.
    """
    from spinney.configuration.site import read_site
    from spinney.house.approvals import Approvals
    from spinney.house.renewal import look_afresh, look_for_rosters, renew_roster

    site = read_site(site_file)
    approvals = Approvals(site.home, study or _the_known(site.home))
    with _exchange(site) as exchange:
        notes: list[str] = []
        if afresh:
            roster = look_afresh(approvals, exchange, site.name)
        else:
            notes, roster = look_for_rosters(approvals, exchange, site.name)
        for note in notes:
            click.echo(note)
        if roster is None:
            _nothing_newer(approvals)
            return
        if site.name not in roster.members and approvals.newest is None:
            raise click.UsageError(f"{site.name} is not on the roster yet; send joining.json to {roster.coordinator}")
        show_roster(roster, approvals, site.name, afresh=afresh)
        yes or click.confirm("Has somebody confirmed these fingerprints by telephone?", abort=True)
        approvals.approve_roster(roster, by, afresh=afresh)
        click.echo(f"version {roster.version} is approved")
        renew_roster(approvals, exchange, site.name)


def _nothing_newer(approvals: Approvals) -> None:
    if approvals.newest is None:
        raise click.UsageError("there is no roster on the exchange that follows the invite; ask the coordinator")
    click.echo(f"version {approvals.newest.version} is approved here; there is nothing newer to confirm")


def show_roster(roster: Roster, approvals: Approvals, me: str, *, afresh: bool = False) -> None:
    """Names and fingerprints, and what is new about them."""
    changes = approvals.changes(roster, afresh=afresh)
    click.echo(f"Roster of {roster.study}, version {roster.version}: {changes.in_words()}.")
    for name, digits in roster.fingerprints.items():
        roles = {roster.coordinator: "coordinator", me: "this house"}
        news = "new" if name in changes.added else "new key" if name in changes.rotated else ""
        click.echo(f"  {name:<20} {digits}   {', '.join(word for word in (roles.get(name), news) if word)}".rstrip())
    click.echo(f"  {'the whole roster':<20} {roster.fingerprint}")


@click.command(short_help="List the studies of this house.")
@site_option
@json_option
def studies(site_file: Path, as_json: bool) -> None:
    """List the studies that this house was invited to, what is approved, and which roster is in force."""
    from spinney.configuration.site import read_site
    from spinney.house.approvals import Approvals, known_in

    home = read_site(site_file).home
    known = [_known_study(Approvals(home, name)) for name in known_in(home)]
    if as_json:
        click.echo(json.dumps([asdict(one) for one in known], indent=2))
        return
    for one in known:
        click.echo(str(one))
    if not known:
        click.echo("no studies here; a coordinator's invite begins one: spinney site join INVITE", err=True)


@dataclass(frozen=True)
class _KnownStudy:
    """What this house has decided about a study; what it has not decided yet is empty or 0."""

    study: str
    approved: str
    by: str
    digest: str
    roster: int
    in_force: int
    problem: str

    def __str__(self) -> str:
        state = f"approved on {self.approved[:10]} by {self.by or 'somebody'}" if self.approved else "not approved"
        roster = f"roster version {self.roster}" if self.roster else "no roster approved"
        return f"{self.study}: {state}; {roster}" + (f"; {self.problem}" if self.problem else "")


def _known_study(approvals: Approvals) -> _KnownStudy:
    from spinney.house.approvals import NotApproved

    problem, approval = "", None
    try:
        approval = approvals.approval
        _ = approvals.study, approvals.roster
    except NotApproved as reason:
        problem = str(reason)
    return _KnownStudy(
        study=approvals.name,
        approved=approval.time if approval else "",
        by=approval.by if approval else "",
        digest=approval.digest if approval else "",
        roster=approvals.newest.version if approvals.newest else 0,
        in_force=approvals.version_in_force,
        problem=problem,
    )


def _the_known(home: Path) -> str:
    from spinney.house.approvals import known_in

    names = known_in(home)
    if len(names) != 1:
        raise click.UsageError(
            f"name one with --study: {', '.join(names)}" if names else "no study here; first: spinney site join INVITE"
        )
    return names[0]


def _exchange(site: SiteSettings) -> Exchange:
    if site.exchange is None:
        raise click.UsageError("site.yaml says no `exchange`; write where the mailbox is: exchange: {url: ...}")
    return site.exchange.open()
