"""From the site's data to a checked, encoded cohort. Tasks pass references into the vault and counts, never rows."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.logging import get_run_logger
from pydantic import Field

from spinney.base import Name, Settings
from spinney.cohort.check_result import CheckResult
from spinney.cohort.encoded import write_encoded
from spinney.cohort.pull import PullResult, pull
from spinney.cohort.vault import CohortRef
from spinney.configuration.site import SiteSettings, read_site
from spinney.configuration.study_file import read_study
from spinney.study.study import Study
from spinney.tasks.artifacts import show_quality
from spinney.tasks.guarded import guards_patients
from spinney.tasks.retries import NO_TRACE, TRANSIENT


class CohortSpec(Settings):
    """Which cohort: a study and the site's own file. Secrets are read from the environment, inside the task."""

    name: Name = Field(description="The study's name, for the run's name.")
    study: Path = Field(description="The study's file.")
    site: Path = Field(description="The site's own file.")

    def read(self) -> tuple[Study, SiteSettings]:
        return read_study(self.study), read_site(self.site)


@task(task_run_name="pull the cohort of {spec.name}", **TRANSIENT, **NO_TRACE)
@guards_patients
def pull_cohort(spec: CohortSpec) -> PullResult:
    """Pull the cohort into the vault."""
    study, site = spec.read()
    result = pull(study, site)
    for note in result.report.for_logs:
        get_run_logger().info(note)
    return result


@task(task_run_name="check the cohort of {spec.name}", **NO_TRACE)
@guards_patients
def check_cohort(pulled: PullResult, spec: CohortSpec) -> CheckResult:
    """Hold the cohort against the study's rules; whether it may take part, `quality.require` says."""
    from spinney.cohort.check_result import check_cohort as check  # Great Expectations takes seconds to import

    study, site = spec.read()
    checked = check(site.home, study, pulled.cohort, pulled.report)
    show_quality(checked.quality, spec.name)
    log = get_run_logger()
    for failed in checked.quality.failures("warning"):
        log.warning("%s: %d of %d fail", failed.rule, failed.failed, failed.checked)
    for line in checked.drift.warnings if checked.drift else ():
        log.warning(line)
    return checked


@task(task_run_name="encode the cohort of {spec.name}", **NO_TRACE)
@guards_patients
def encode_cohort(cohort: CohortRef, spec: CohortSpec) -> CohortRef:
    """Keep the cohort's arrays beside its table."""
    study, site = spec.read()
    return write_encoded(site.vault, cohort, study)
