"""Scoring and watching, one call each. Rows and identifiers stay in the vault; tasks pass counts and references."""

from __future__ import annotations

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.events import emit_event
from prefect.logging import get_run_logger

from spinney.cohort.pull_report import OpenRows
from spinney.configuration.site import SiteSettings
from spinney.reports.words import scores_markdown, watch_markdown, watch_rows
from spinney.scoring.monitor import Watch
from spinney.scoring.score_night import ScoreNight, ScoringResult
from spinney.study.study import Study
from spinney.tasks.artifacts import artifact_key
from spinney.tasks.guarded import guards_patients
from spinney.tasks.retries import NO_TRACE, TRANSIENT
from spinney.tasks.site import honour_objections, watch_of

BELOW_PROMISE = "spinney.champion.below-promise"


@task(task_run_name="pull the patients to be scored", **TRANSIENT, **NO_TRACE)
@guards_patients
def pull_open_rows(site: SiteSettings, night: ScoreNight) -> OpenRows:
    """The rows whose outcome nobody knows yet, into the vault."""
    rows = night.pull()
    honour_objections(site, night.study, rows.report.objections)
    for note in rows.report.for_logs:
        get_run_logger().info(note)
    return rows


@task(task_run_name="apply the champion", **NO_TRACE)
@guards_patients
def apply_champion(night: ScoreNight, rows: OpenRows) -> ScoringResult:
    """What the model in use says, kept in the vault."""
    return night.apply_model(rows)


@task(task_run_name="write scores to the table", **TRANSIENT, **NO_TRACE)
@guards_patients
def write_to_table(night: ScoreNight, said: ScoringResult) -> int:
    """The hospital's table; written again, nothing is there twice."""
    return night.write_table(said)


@task(task_run_name="write scores to the FHIR server", **TRANSIENT, **NO_TRACE)
@guards_patients
def write_to_fhir(night: ScoreNight, said: ScoringResult) -> int:
    """RiskAssessment resources; written again, nothing is there twice."""
    return night.write_fhir(said)


@task(task_run_name="show what was scored", **NO_TRACE)
@guards_patients
def show_scores(night: ScoreNight, result: dict[str, int | str]) -> None:
    """Counts, for the Prefect UI."""
    key = artifact_key(night.site, night.study.name, "scores")
    create_markdown_artifact(scores_markdown(night.study.name, result), key=key)


@task(task_run_name="watch the champion", **NO_TRACE)
@guards_patients
def watch_champion(site: SiteSettings, study: Study) -> Watch | None:
    """What the model in use said against what happened."""
    return watch_of(site, study)


@task(task_run_name="show how the champion does", **NO_TRACE)
@guards_patients
def show_watch(site: SiteSettings, study: Study, seen: Watch) -> None:
    """Figures for the Prefect UI, and an event for every automation that listens to alerts."""
    create_markdown_artifact(watch_markdown(study.name, seen), key=artifact_key(site.name, study.name, "watch"))
    rows = watch_rows(seen)
    if rows:
        key = artifact_key(site.name, study.name, "windows")
        create_table_artifact(rows, key=key, description="The model in use, oldest window first.")
    for words in seen.alerts:
        get_run_logger().warning(words)
    if seen.alerts:
        resource = {"prefect.resource.id": f"spinney.model.{site.name}.{study.name}.{seen.version}"}
        emit_event(BELOW_PROMISE, resource=resource, payload={"alerts": list(seen.alerts), "wish": "a round"})
