"""A cohort in the vault, checked: the study's rules, drift since the last cohort, and the page for the site's staff."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spinney.cohort.drift import Drift, drift, last_cohort
from spinney.cohort.quality_docs import write_docs
from spinney.cohort.vault import Vault
from spinney.connectors.great_expectations.quality import Counts, QualityReport, check_table
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

DOCS_FOLDER = "data-docs"


@dataclass(frozen=True)
class CheckResult:
    """What came of it, in counts."""

    quality: QualityReport
    drift: Drift | None
    """None: there is no earlier cohort of this study."""
    docs: Path


def check_cohort(home: Path, study: Study, cohort: CohortRef, counts: Counts) -> CheckResult:
    """Check a site's cohort. Whether it may take part is for `quality.require` to say."""
    vault = Vault(home)
    table = vault.read(cohort)
    quality = check_table(table, study, counts)
    before = last_cohort(vault, study, cohort)
    moved = drift(vault.read(before), table, study) if before else None
    if not quality.failures("critical"):
        vault.accept(cohort)
    docs = write_docs(home / DOCS_FOLDER, study, cohort, quality, moved.warnings if moved else None)
    return CheckResult(quality, moved, docs)
