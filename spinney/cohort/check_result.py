"""A cohort in the vault, checked: the study's rules, drift since the last cohort, and the page for the site's staff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from spinney.cohort.accepted import Accepted, VolumeRules
from spinney.cohort.attrition import Division
from spinney.cohort.drift import Drift, cohorts_before, drift
from spinney.cohort.gaps import gaps
from spinney.cohort.quality_docs import write_docs
from spinney.cohort.record_steps import finer_than_recorded
from spinney.cohort.vault import Vault
from spinney.cohort.volume import NightVolume, Volumes, volume_rules
from spinney.connectors.great_expectations.quality import Counts, QualityReport, RuleResult, check_table
from spinney.errors import CohortRejected
from spinney.rows.cohort import divided
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.encode import encode_label
from spinney.study.study import Study

NOTHING_ACCEPTED, AS_USUAL = Accepted(), VolumeRules()
DOCS_FOLDER = "data-docs"
VERIFY = "see: spinney house verify"


@dataclass(frozen=True)
class CheckResult:
    """What came of it, in counts."""

    quality: QualityReport
    drift: Drift | None
    """None: there is no earlier cohort of this study."""
    docs: Path
    division: Division | None = None
    """None: the outcome is not known, so nobody trains."""
    notes: tuple[str, ...] = ()
    """What people should look at, and what kept nothing from being checked."""


def check_cohort(
    home: Path,
    study: Study,
    cohort: CohortRef,
    counts: Counts,
    accepted: Accepted = NOTHING_ACCEPTED,
    volume: VolumeRules = AS_USUAL,
    *,
    champion: str = "",
    now: datetime | None = None,
) -> CheckResult:
    """Check a site's cohort. Whether it may take part is for `quality.require` to say.

    `champion`: digest of the cohort that the model in use was chosen on. `now`: None where dates are shifted.
    """
    vault = Vault(home)
    table = vault.read(cohort)
    earlier = cohorts_before(vault, study, cohort)
    found = vault.newest_whole(earlier)
    passed_over = earlier[earlier.index(found[0]) + 1 :] if found else earlier
    before = found[1] if found else None
    division = division_of(table, study, vault)
    volumes, tonight = Volumes(vault, study), NightVolume.of(table, study, counts)
    more = (
        *enough_patients(division, study),
        *gaps(table, before, study, counts, accepted),
        *finer_than_recorded(table, study),
        *volume_rules(table, volumes.read(), tonight, volume, now),
    )
    quality = QualityReport((*check_table(table, study, counts).results, *more))
    moved = None if before is None else drift(before, table, study)
    if not quality.failures("critical"):
        vault.accept(cohort)
        volumes.keep(tonight)
    slow = tuple(_slow_drift(vault, earlier, found[0], champion, table, study)) if found else ()
    docs = write_docs(home / DOCS_FOLDER, study, cohort, quality, (*moved.warnings, *slow) if moved else None)
    notes = slow + tuple(f"{ref.path} is damaged, and nothing is compared with it; {VERIFY}" for ref in passed_over)
    return CheckResult(quality, moved, docs, division, notes)


def _slow_drift(
    vault: Vault, earlier: Sequence[CohortRef], last: CohortRef, champion: str, table: pa.Table, study: Study
) -> Iterator[str]:
    """What moves too little from night to night to be seen: since the first accepted cohort, and the champion's."""
    since = {
        "the first accepted cohort that is kept": earlier[:1],
        "the cohort that the model in use was chosen on": [ref for ref in earlier if ref.digest == champion],
    }
    for name, refs in since.items():
        found = vault.newest_whole([ref for ref in refs if ref != last])
        yield from (f"since {name}: {words}" for words in (drift(found[1], table, study).warnings if found else ()))


def division_of(table: pa.Table, study: Study, vault: Vault) -> Division | None:
    """How the rows are divided; None where the outcome is not known, which is another rule's business."""
    frame = table.to_pandas()
    try:
        label = encode_label(frame, study.label)
    except CohortRejected:
        return None
    patients, part, _ = divided(frame, label, study, frame["patient"].tolist(), vault.key)
    return Division.of(part, patients)


def enough_patients(division: Division | None, study: Study) -> Iterator[RuleResult]:
    """Whether as many patients train as a round will ask for; those who are kept aside to measure don't count.

    It is about the whole cohort: how many train, less than how many there are, is how many are kept aside, and they
    may be too few to be told of.
    """
    if division is None:
        return
    fewest = study.privacy.smallest_cohort
    few = division.training < fewest
    people = division.patients
    yield RuleResult(f"at least {fewest} training patients", "critical", people, people if few else 0, not few)
