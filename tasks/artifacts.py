"""What people see of a night in the Prefect UI: counts, digests and figures that may be shown, never rows."""

from __future__ import annotations

import re

from prefect.artifacts import create_table_artifact

from connectors.quality import QualityReport


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
            "failed": one.failed,
            "of": one.checked,
        }
        for one in quality.results
    ]
    create_table_artifact(
        rows, key=artifact_key(study, "quality"), description="How the cohort keeps the study's rules."
    )
