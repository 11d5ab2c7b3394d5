"""spinney study: write, check and describe the file that all sites sign."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.flows.cli.options import json_option

if TYPE_CHECKING:
    from spinney.cohort.infer import Answers


@click.group()
def study() -> None:
    """Write and check the study that all sites sign."""


@study.command(short_help="Write a first study from tables.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--label", required=True, help="Column that holds the outcome.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default="study.yaml", show_default=True)
@click.option("--name", help="Name of the study; the folder's if not given.")
@click.option("--codes", multiple=True, metavar="COLUMN", help="Its numbers are codes; each is a category.")
@click.option("--numbers", multiple=True, metavar="COLUMN", help="Its numbers are amounts, though it is called a code.")
@click.option("--icd-chapters", multiple=True, metavar="COLUMN", help="Group its ICD-9 or ICD-10 codes by chapter.")
@click.option("--force", is_flag=True, help="Write over a study that is there.")
def infer(
    folder: Path,
    label: str,
    output: Path,
    name: str | None,
    codes: tuple[str, ...],
    numbers: tuple[str, ...],
    icd_chapters: tuple[str, ...],
    force: bool,
) -> None:
    """Write a first study from the tables in DIR, one CSV or Parquet file per site.

    Columns may be called anything: a feature has a name, and `column` says what the tables call it. Whole numbers in a
    column that is called like a code (admission_type_id) are asked about at a terminal, and categories elsewhere.
    Bands such as [70-80) are read as their middle.

    Read and correct what it writes: units, ranges and what counts as yes are guesses.
    """
    from spinney.cohort.infer import Answers, infer_study
    from spinney.configuration.study_file import write_study
    from spinney.connectors.tables import read_tables

    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already; take another --output, or --force to write over it")
    tables = read_tables(folder)
    called = name or _name_of(folder)
    answers = Answers(frozenset(codes), frozenset(numbers), frozenset(icd_chapters))
    inferred = infer_study(tables, label, called, answers)
    if inferred.asked and sys.stdin.isatty():
        inferred = infer_study(tables, label, called, _answered(answers, inferred.asked))
    write_study(inferred.study, output, inferred.notes)
    for note in inferred.notes:
        click.echo(note)
    click.echo(f"{output}: {len(inferred.study.features)} features, sites {', '.join(tables)}; read it and correct it.")


def _answered(answers: Answers, asked: tuple[str, ...]) -> Answers:
    """What somebody at the terminal says of each column."""
    amounts = {
        column
        for column in asked
        if not click.confirm(f"{column} holds few whole numbers. Are they codes, each a category?", default=True)
    }
    return answers._replace(codes=answers.codes.union(asked) - amounts, numbers=answers.numbers | amounts)


@study.command("import-fair4health", short_help="Translate a FAIR4Health document.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), default="study.yaml", show_default=True)
@click.option("--force", is_flag=True, help="Write over a study that is there.")
def import_fair4health(file: Path, output: Path, force: bool) -> None:
    """Write a first study from a FAIR4Health document (JSON): a feature set, or a data set, data-mining model or
    prospective study with one.

    What was assumed and what has no counterpart is listed, with its line of FILE, here and in the study. Read and
    correct it: units and horizons are not in such documents, and ranges in few.
    """
    from spinney.configuration.study_file import write_study
    from spinney.connectors.fair4health.imported import import_document

    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already; take another --output, or --force to write over it")
    imported = import_document(file)
    lines = [*(f"assumed: {line}" for line in imported.assumed), *(f"left out: {line}" for line in imported.left_out)]
    write_study(imported.study, output, lines)
    click.echo("\n".join(lines))
    features, left_out = len(imported.study.features), len(imported.left_out)
    click.echo(f"{output}: {features} features, {left_out} left out; read it and correct it.")


@study.command(short_help="Find every mistake in a study file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON, mistakes included.")
@click.pass_context
def check(ctx: click.Context, file: Path, as_json: bool) -> None:
    """Say whether FILE is a valid study, and list every mistake with its line."""
    from spinney.configuration.study_file import read_study
    from spinney.errors import StudyInvalid

    try:
        found = read_study(file)
    except StudyInvalid as error:
        if not as_json:
            raise
        click.echo(json.dumps({"valid": False, "mistakes": error.mistakes}, indent=2))
        ctx.exit(2)
    facts = {"name": found.name, "version": found.version, "features": len(found.features), "label": found.label.name}
    if as_json:
        warnings = [found.privacy.warning] if found.privacy.warning else []
        valid = {"valid": True, **facts, "digest": found.digest, "mistakes": [], "warnings": warnings}
        click.echo(json.dumps(valid, indent=2))
    else:
        words = ", ".join(f"{key} {value}" for key, value in facts.items())
        click.echo(f"{file} is valid: {words}\ndigest {found.digest}")
        if found.privacy.warning:
            click.echo(f"Know that with {found.privacy.warning}.", err=True)


@study.command(short_help="Write what the code sets mean into the study.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def pin(file: Path, as_json: bool) -> None:
    """Read the files of FILE's code sets and write what they mean, and their digests, into FILE.

    All sites then mean the same codes, and none of them needs the files. Nothing is downloaded. Everything else in FILE
    stays as it is; without a change nothing is written. Raise `version` and let the sites approve the study again.
    """
    from spinney.configuration.pinning import pin as pin_sets

    found, changed = pin_sets(file)
    sets = {name: {"codes": len(one.written), "files": one.files} for name, one in found.pinned.items()}
    if as_json:
        click.echo(json.dumps({"digest": found.digest, "changed": changed, "code_sets": sets}, indent=2))
        return
    for name, one in found.pinned.items():
        files = ", ".join(f"{file} ({digest[:12]})" for file, digest in one.files.items()) or "by their beginning"
        click.echo(f"@{name}: {len(one.written):,} codes from {files}{' (new)' if name in changed else ''}")
    what = "is written" if changed else "was pinned already"
    click.echo(f"{file} {what if sets or changed else 'has no code sets'}; digest {found.digest}")


@study.command(short_help="Show what the codes mean, and how many a site has.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--site", "site_file", type=click.Path(path_type=Path), help="Count in this site's data, too.")
@json_option
def codes(file: Path, site_file: Path | None, as_json: bool) -> None:
    """Show what every code, prefix and code set in FILE means, and for which feature, index event or label it is asked.

    With --site the source is read as for a cohort, without those who object, and every code is counted. Nothing is sent
    and nothing kept; what fewer patients than the study's smallest leaf have is not counted out.
    """
    from spinney.configuration.study_file import read_study
    from spinney.flows.cli.study_codes import codes_as_data, counted, lines

    found = read_study(file)
    counts = counted(found, site_file) if site_file else None
    if as_json:
        click.echo(json.dumps(codes_as_data(found, counts), indent=2))
    else:
        click.echo("\n".join(lines(found, counts)))


@study.command(short_help="Print the JSON schema for editors.")
def schema() -> None:
    """Print the JSON schema of a study, for editors that complete and check YAML."""
    from spinney.study.study import Study

    click.echo(json.dumps(Study.model_json_schema(), indent=2))


def _name_of(folder: Path) -> str:
    words = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.resolve().name).lstrip("0123456789_.-")
    return words[:64] or "study"
