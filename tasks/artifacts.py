"""What people see of a night in the Prefect UI: counts, digests and figures that may be shown, never rows."""

from __future__ import annotations

import re

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from spinney.cohort.attrition import Division
from spinney.cohort.pull_report import PullReport
from spinney.connectors.great_expectations.quality import QualityReport
from spinney.reports.attrition import NOBODY_ELSE, PATIENTS, attrition_rows
from spinney.reports.facts import NightFacts, RoundFacts, steps_in
from spinney.reports.words import comparison_rows, credit_rows, failed_words, night_markdown, round_markdown
from spinney.study.study import Study


def artifact_key(*words: str) -> str:
    """Prefect takes lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def show_quality(quality: QualityReport, study: str) -> None:
    """Every rule with its counts."""
    rows = [
        {
            "rule": one.rule,
            "severity": one.severity,
            "kept": "yes" if one.passed else "no",
            "failed": failed_words(one),
        }
        for one in quality.results
    ]
    create_table_artifact(
        rows, key=artifact_key(study, "quality"), description="How the cohort keeps the study's rules."
    )


def show_attrition(site: str, study: Study, pulled: PullReport, division: Division | None = None) -> None:
    """The way from the source to the rows, rule by rule; nothing where nobody got so far as to count index events."""
    if pulled.attrition is not None:
        rows = attrition_rows(pulled, division, study)
        key = artifact_key(site, study.name, "attrition")
        create_table_artifact(rows, key=key, description=f"From the source to the rows. {PATIENTS} {NOBODY_ELSE}")


def show_night(facts: NightFacts) -> None:
    """What was decided at a site and why, against what, and whose trees help."""
    study, site = facts.study.name, facts.site
    create_markdown_artifact(night_markdown(facts), key=artifact_key(site, study, "choice"))
    if facts.outcome is None:
        return
    compared, credit = comparison_rows(facts.outcome), credit_rows(facts.outcome)
    create_table_artifact(compared, key=artifact_key(site, study, "candidates"), description="On test patients.")
    create_table_artifact(credit, key=artifact_key(site, study, "credit"), description="Where the vote comes from.")


def show_round(facts: RoundFacts) -> None:
    """Who took part, who was absent and why, seconds and bytes per step."""
    study = facts.study.name
    create_markdown_artifact(round_markdown(facts), key=artifact_key(study, "round"))
    there = {site: "took part" for site in facts.described if site not in facts.absent}
    sites = [{"site": site, "what": words} for site, words in sorted({**there, **facts.absent}.items())]
    create_table_artifact(sites, key=artifact_key(study, "sites"), description="Who took part, and who was absent.")
    steps = [
        {"step": one.name, "seconds": round(one.seconds, 2), "bytes": one.bytes, "answers": one.answers}
        for one in steps_in(facts.lines)
    ]
    create_table_artifact(steps, key=artifact_key(study, "steps"), description="Seconds and bytes of every step.")
