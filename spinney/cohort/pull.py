"""The whole way: from what a study asks and a site has, to a cohort in the vault and a report of counts."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spinney.cohort.engine import build
from spinney.cohort.events import stage
from spinney.cohort.handover import Handover
from spinney.cohort.imported_table import finish
from spinney.cohort.impute import forward_fill_then_median
from spinney.cohort.recipes import wanted_of
from spinney.cohort.selected_events import select_events
from spinney.cohort.vault import CohortRef, Vault
from spinney.configuration.site import SiteSettings, source_of
from spinney.connectors.duck import has_no_room, open_bench
from spinney.connectors.fhir.check import invalid_ids
from spinney.connectors.sources import TABLE, Progress, Pulled, Source, Wanted
from spinney.connectors.sources.files import FilesSettings
from spinney.errors import CohortRejected, SourceFailed
from spinney.rows.cohort import divided
from spinney.rows.encode import encode_label
from spinney.rows.parts import Part
from spinney.study.study import Study

PLAIN_NAMES: tuple[str | None, str | None] = ("patient", "index_time")


@dataclass
class PullReport:
    """What happened, in counts only."""

    read: Counter[str] = field(default_factory=Counter)
    """Resources or rows by kind."""
    validated: dict[str, int] = field(default_factory=dict)
    """Resources by kind that were checked against the FHIR models."""
    quarantined: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, reason) -> how many were set aside because they are wrong."""
    unused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, reason) -> events that are right, but don't count."""
    unrecorded: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Kind -> events without a recording time, of all."""
    index_events: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> index events that became no row."""
    rows: int = 0
    positive: int = 0
    unripe: int = 0
    filled: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Feature -> shares of rows filled forward and with the median, where the study asks for it."""
    watermark: datetime | None = None
    notes: list[str] = field(default_factory=list)
    quoting: list[str] = field(default_factory=list)
    """Notes with the source's own codes and units, which may be one patient's: for the terminal, never for a log."""

    def plain(self) -> dict[str, Any]:
        """The same as plain values, for JSON and for logs."""
        return {
            name: {_words(key): count for key, count in value.items()} if isinstance(value, dict) else value
            for name, value in {**vars(self), "watermark": self.watermark and self.watermark.isoformat()}.items()
            if name != "quoting"
        }

    @property
    def for_logs(self) -> list[str]:
        """The notes without what quotes the source."""
        more = f"{len(self.quoting)} notes are about codes and units of the source: spinney site check shows them"
        return [*self.notes, more] if self.quoting else self.notes

    @property
    def quarantined_share(self) -> float:
        """Part of what was read that is in quarantine."""
        return self.quarantined.total() / max(self.read.total(), 1)


@dataclass(frozen=True)
class PullResult:
    """Rows with a ripe label, which train; rows that are still open, which can only be scored; and the report."""

    cohort: CohortRef
    unripe: CohortRef
    report: PullReport


@dataclass(frozen=True)
class OpenRows:
    """Rows that can only be scored, and those with a ripe label, if there are any; who they are is in the handover."""

    unripe: CohortRef
    cohort: CohortRef | None
    report: PullReport


def pull(
    study: Study,
    site: SiteSettings,
    *,
    now: datetime | None = None,
    progress: Progress | None = None,
    source: Source | None = None,
) -> PullResult:
    """Pull a site's cohort. `now` is when the data end at the latest; `source` replaces the one of the site's file."""
    with _pulled(study, site, now, progress, source) as (ripe, still_open, report):
        cohort, unripe = _kept(ripe, still_open, study, site.vault, report)
        if cohort is None:
            raise CohortRejected("the cohort has rows with a ripe label", 0, _why_empty(report))
    return PullResult(cohort, unripe, report)


def pull_open(
    study: Study, site: SiteSettings, *, now: datetime | None = None, source: Source | None = None
) -> OpenRows:
    """Pull the rows to be scored, and keep who they are until their scores are written back."""
    own = site.source
    if isinstance(own, FilesSettings) and own.table and not (own.patient_column and own.index_time_column):
        raise SourceFailed("scores belong to a patient and a time; name patient_column and index_time_column")
    with _pulled(study, site, now, None, source) as (ripe, still_open, report):
        Handover(site.vault, study.name).keep_identifiers(still_open["patient"])
        cohort, unripe = _kept(ripe, still_open, study, site.vault, report)
    return OpenRows(unripe, cohort, report)


@contextmanager
def _pulled(
    study: Study, site: SiteSettings, now: datetime | None, progress: Progress | None, source: Source | None
) -> Iterator[tuple[pa.Table, pa.Table, PullReport]]:
    """The ripe rows and those that are still open, while what they were made from is still there."""
    now = (now or datetime.now(UTC)).astimezone(UTC)
    vault = site.vault
    report = PullReport()
    with vault.staging(study.name) as staging:
        tell = progress or (lambda *_: None)
        pulled = (source or source_of(site, study.name)).pull(_wanted(study, site, now), staging, tell)
        report.notes += pulled.notes
        report.quarantined.update({("source", reason): count for reason, count in pulled.quarantined.items()})
        try:
            table = _table(study, site, pulled, _emptied(staging / "work"), now, report, tell)
        except duckdb.Error as error:  # its text may quote what a patient's record says
            if has_no_room(error):
                raise OSError(errno.ENOSPC, "no room") from None
            raise SourceFailed(f"DuckDB gave up on the events: {type(error).__name__}; is the disk full?") from None
        if study.imputation == "forward-fill-then-median":
            table = _imputed(table, study, vault, report)
        halves = table.filter(table["ripe"]), table.filter(pc.invert(table["ripe"]))
        del table  # it may be large
        yield *halves, report


def _wanted(study: Study, site: SiteSettings, now: datetime) -> list[Wanted]:
    if study.cohort is None or getattr(site.source, "table", None) is not None:
        return [
            Wanted(TABLE, ("patient", "index_time", *(f.name for f in study.features), study.label.name), None, now)
        ]
    return wanted_of(study, site.codes, now)


def _table(
    study: Study,
    site: SiteSettings,
    pulled: Pulled,
    work: Path,
    now: datetime,
    report: PullReport,
    progress: Progress,
) -> pa.Table:
    """The table with `ripe` as its last column."""
    with open_bench(work, site.timezone) as bench:
        if pulled.table is not None:
            return _finished(bench, study, site, pulled.table, report)
        invalid, report.validated = invalid_ids(pulled.files, site.validation, site.validation_sample)
        staged = stage(bench, pulled, work, invalid, progress)
        report.read.update(staged.read)
        report.quarantined.update(staged.quarantined)
        relevant = select_events(bench, staged, study, site.maps, now, work / "relevant")
        report.quarantined.update(relevant.quarantined)
        report.unused, report.unrecorded = relevant.left_out, relevant.unrecorded
        report.watermark = relevant.watermark
        report.quoting = relevant.quoting
        report.notes += [*relevant.notes, *_without_recording_time(relevant.unrecorded)]
        built = build(bench, relevant, study, site.largest_table_mib << 20)
        report.index_events, report.left_out = built.index_events, built.left_out
        if built.strangers:
            report.notes.append(f"{built.strangers:,} index events are of patients whom the source does not describe")
        return built.table


def _finished(
    bench: duckdb.DuckDBPyConnection, study: Study, site: SiteSettings, path: Path, report: PullReport
) -> pa.Table:
    own = site.source
    names = (own.patient_column, own.index_time_column) if isinstance(own, FilesSettings) else PLAIN_NAMES
    finished = finish(bench, path, study, *names)
    report.read[TABLE], report.watermark = finished.rows, finished.watermark
    report.quarantined.update(finished.quarantined)
    report.index_events = finished.table.num_rows
    report.notes += finished.notes
    return finished.table


def _without_recording_time(unrecorded: dict[str, tuple[int, int]]) -> list[str]:
    return [
        f"{kind}: {without:,} of {total:,} have no recording time, so their own time counts as known"
        for kind, (without, total) in unrecorded.items()
        if without
    ]


def _imputed(table: pa.Table, study: Study, vault: Vault, report: PullReport) -> pa.Table:
    trains = table["ripe"].to_numpy().copy()
    known = table.filter(table["ripe"]).select(["patient", "index_time", study.label.name])
    if known.num_rows:
        frame, patients = known.to_pandas(), vault.pseudonyms(known["patient"]).to_pylist()
        _, parts, _ = divided(frame, encode_label(frame, study.label), study, patients, vault.key)
        trains[trains] = parts == Part.TRAINING
    table, report.filled = forward_fill_then_median(table, study, trains)
    return table


def _kept(
    ripe: pa.Table, still_open: pa.Table, study: Study, vault: Vault, report: PullReport
) -> tuple[CohortRef | None, CohortRef]:
    report.rows, report.unripe = ripe.num_rows, still_open.num_rows
    yes = (
        pa.array(encode_label(ripe.select([study.label.name]).to_pandas(), study.label))
        if ripe.num_rows
        else pa.array([], pa.int8())
    )
    report.positive = int(pc.sum(yes).as_py() or 0)
    cohort = vault.write(ripe, study, report.watermark) if ripe.num_rows else None
    return cohort, vault.write(still_open.drop_columns([study.label.name]), study, report.watermark, ripe=False)


def _why_empty(report: PullReport) -> str:
    reasons = [f"{count:,} {reason}" for reason, count in report.left_out.most_common(3)]
    if report.unripe:
        reasons.insert(0, f"{report.unripe:,} not ripe yet")
    return f"of {report.index_events:,} index events: {', '.join(reasons) or 'none'}"


def _words(key: str | tuple[str, str]) -> str:
    return key if isinstance(key, str) else ": ".join(key)


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
