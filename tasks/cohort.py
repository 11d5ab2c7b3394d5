"""From the site's data to a checked, encoded cohort. Tasks pass references into the vault and counts, never rows."""

from __future__ import annotations

from datetime import UTC, datetime

from prefect import task
from prefect.logging import get_run_logger

from spinney.cohort.check_result import CheckResult
from spinney.cohort.encoded import write_encoded
from spinney.cohort.pull import pull
from spinney.cohort.pull_report import PullReport, PullResult
from spinney.configuration.site import SiteSettings
from spinney.errors import CohortRejected
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study
from spinney.tasks.artifacts import show_attrition, show_quality
from spinney.tasks.guarded import guards_patients
from spinney.tasks.retries import NO_TRACE, TRANSIENT
from spinney.tasks.site import champion_cohort, honour_objections


@task(task_run_name="pull the cohort of {study.name}", **TRANSIENT, **NO_TRACE)
@guards_patients
def pull_cohort(site: SiteSettings, study: Study) -> PullResult:
    """Pull the cohort into the vault. Secrets are read from the environment here, and nowhere else."""
    report = PullReport()
    try:
        result = pull(study, site.pull_plan(study.name), report=report)
    except CohortRejected:
        show_attrition(site.name, study, report)
        raise
    finally:
        honour_objections(site, study, report.objections)
    for note in result.report.for_logs:
        get_run_logger().info(note)
    return result


@task(task_run_name="check the cohort of {study.name}", **NO_TRACE)
@guards_patients
def check_cohort(site: SiteSettings, study: Study, pulled: PullResult) -> CheckResult:
    """Hold the cohort against the study's rules; whether it may take part, `quality.require` says."""
    from spinney.cohort.check_result import check_cohort as check  # Great Expectations takes seconds to import

    now = None if site.as_of else datetime.now(UTC)
    checked = check(
        site.home,
        study,
        pulled.cohort,
        pulled.report,
        site.accepted,
        site.volume,
        champion=champion_cohort(site, study),
        now=now,
    )
    show_attrition(site.name, study, pulled.report, checked.division)
    show_quality(checked.quality, study.name)
    log = get_run_logger()
    for failed in checked.quality.failures("warning"):
        log.warning("%s: %d of %d fail", failed.rule, failed.failed, failed.checked)
    for line in (*checked.notes, *(checked.drift.warnings if checked.drift else ())):
        log.warning(line)
    return checked


@task(task_run_name="encode the cohort of {study.name}", **NO_TRACE)
@guards_patients
def encode_cohort(site: SiteSettings, study: Study, cohort: CohortRef) -> CohortRef:
    """Keep the cohort's arrays beside its table."""
    return write_encoded(site.vault, cohort, study)
