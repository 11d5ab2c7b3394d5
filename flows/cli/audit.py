"""spinney audit: what left this house and what came."""

from __future__ import annotations

import json
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO

import click

from spinney.flows.cli.keys import home_option
from spinney.flows.cli.options import json_option, study_option

if TYPE_CHECKING:
    from spinney.reports.dpia import AttackFigures
    from spinney.reports.evidence import Evidence


@click.group()
def audit() -> None:
    """Show, verify and export the log of everything that left this house and came to it."""


@audit.command(short_help="Show the newest entries.")
@home_option
@click.option("--last", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@json_option
def show(home: Path, last: int, as_json: bool) -> None:
    """Show the newest entries, one per line."""
    from spinney.house.audit import Audit, exported

    log = Audit(home / "audit.jsonl")
    newest = deque(log.lines(), maxlen=last)
    if as_json:
        click.echo(exported(newest, "json"), nl=False)
        return
    if not newest:
        click.echo(f"no entries in {log.path}", err=True)
    for line in newest:
        size = f", {line.entry.bytes} bytes" if line.entry.bytes else ""
        place = f" [{line.entry.study}, round {line.entry.round}{size}]" if line.entry.study else ""
        click.echo(f"{line.number:>6}  {line.time[:19].replace('T', ' ')}  {line.entry.words}{place}")


@audit.command("open", short_help="Show a sent message as a person reads it.")
@click.argument("number", type=click.IntRange(1))
@home_option
@click.option("--tree", type=click.IntRange(1), default=1, show_default=True, help="Which tree of a forest.")
def open_(number: int, home: Path, tree: int) -> None:
    """Show what this house has sent, by the number of its line in `spinney audit show`.

    A house keeps what it sends as long as the study keeps messages (schedule.retention_days), except for what would
    open something hidden: seeds of masks, and sums on their way round a ring.
    """
    from spinney.house.approvals import Approvals
    from spinney.house.audit import Audit
    from spinney.house.sent import NotKept, SentMessages
    from spinney.reports.messages import message_lines

    line = next((one for one in Audit(home / "audit.jsonl").lines() if one.number == number), None)
    if line is None:
        raise click.UsageError(f"the log in {home} has no line {number}; see them: spinney audit show")
    sent = SentMessages(home, line.entry.study).of(line)
    study = Approvals(home, line.entry.study).study
    if study.digest != sent.study:
        raise NotKept(f"line {number} was sent under another version of {study.name}, which is not approved any more")
    click.echo(f"{line.time[:19].replace('T', ' ')}  {line.entry.words}")
    for words in message_lines(study, line.entry.kind, sent.content, tree):
        click.echo(f"  {words}" if words else "")


@audit.command(short_help="Collect what an inspector asks for, as printable pages.")
@home_option
@study_option
@click.option("--output", "-o", type=click.Path(path_type=Path), default="evidence.zip", show_default=True)
@click.option("--attacks", type=click.File("rb"), help="Figures of `python -m benchmarks.privacy --json FILE`.")
@click.pass_context
def evidence(ctx: click.Context, home: Path, study: str | None, output: Path, attacks: BinaryIO | None) -> None:
    """Write study, approvals, roster, log and its verification, what left, floors, objections and a draft of an impact
    assessment as pages that print, with the digests of all. Exit code 2 if the log was changed.
    """
    from spinney.house.audit import Intact
    from spinney.reports.dpia import read_figures
    from spinney.reports.evidence import evidence_files, packed

    found = _evidence(home, study, read_figures(attacks.read()) if attacks else None)
    output.write_bytes(packed(evidence_files(found)))
    click.echo(f"{output} is written: {found.study.name} at {found.house}; read 1-study.html first")
    if not isinstance(found.verified, Intact):
        click.echo("the log is NOT what was written; see 5-log.html, and: spinney audit verify", err=True)
        ctx.exit(2)


def _evidence(home: Path, name: str | None, attacks: AttackFigures | None) -> Evidence:
    from spinney.flows.cli.site_show import what_leaves
    from spinney.house.approvals import Approvals, NotApproved, the_study
    from spinney.house.audit import Audit, AuditBroken, Intact
    from spinney.house.keys import KeyRing
    from spinney.reports.dpia import dpia_page
    from spinney.reports.evidence import Evidence

    approvals = Approvals(home, name or the_study(home))
    study = approvals.study
    try:
        roster = approvals.roster
    except NotApproved:
        roster = None
    log = Audit(home / "audit.jsonl")
    verified: Intact | list[str]
    try:
        verified = log.verify()
    except AuditBroken as broken:
        verified = broken.problems
    own = {identity.public for identity in KeyRing(home).all().values()}
    house = next((one for one, key in (roster.keys if roster else {}).items() if key in own), "this house")
    return Evidence(
        house=house,
        at=datetime.now(UTC),
        study=study,
        text=(approvals.folder / "study.yaml").read_bytes(),
        approval=approvals.approval,
        roster=roster,
        lines=[*log.lines()],
        verified=verified,
        dpia=dpia_page(study, house, roster, what_leaves(study), attacks),
    )


@audit.command(short_help="Find lines that were changed or removed.")
@home_option
@click.option("--against", type=click.File(encoding="utf-8"), help="An export that was kept where nobody here writes.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_context
def verify(ctx: click.Context, home: Path, against: TextIO | None, as_json: bool) -> None:
    """Find every line that was changed, removed or moved. Exit code 2 if there is one.

    Whoever can write in the house's folder could write the whole log anew; an export kept elsewhere shows that.
    """
    from spinney.house.audit import Audit, AuditBroken, differences

    if not (home / "audit.jsonl").exists():
        raise click.UsageError(f"there is no audit log in {home}; give the house's folder with --home")
    try:
        log = Audit(home / "audit.jsonl")
        found = log.verify()
        if against is not None and (problems := differences(log.lines(), against.read())):
            raise AuditBroken(problems)
    except AuditBroken as error:
        if not as_json:
            raise
        click.echo(json.dumps({"intact": False, "problems": error.problems}, indent=2))
        ctx.exit(2)
    if as_json:
        facts = {"intact": True, "lines": found.lines, "last": found.chain, "notes": found.notes, "problems": []}
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"{found.lines} lines, nothing changed or removed; the last has the hash {found.chain[:16]}")
    for note in found.notes:
        click.echo(f"Note: {note}")


@audit.command(short_help="Write the log for a spreadsheet.")
@home_option
@click.option("--format", "form", type=click.Choice(["csv", "json"]), default="csv", show_default=True)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, allow_dash=True), default="-", help="File; - for stdout."
)
def export(home: Path, form: Literal["csv", "json"], output: Path) -> None:
    """Write the whole log as CSV or JSON, hashes included. Refused if the log is not intact."""
    from spinney.house.audit import Audit, exported

    log = Audit(home / "audit.jsonl")
    log.verify()
    text = exported(log.lines(), form)
    click.echo(text, nl=False) if str(output) == "-" else output.write_text(text, encoding="utf-8")
