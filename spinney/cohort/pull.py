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

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spinney.cohort.as_of import clock, note_on_now
from spinney.cohort.attrition import Attrition
from spinney.cohort.code_matches import matched
from spinney.cohort.engine import build
from spinney.cohort.events import Staged, stage
from spinney.cohort.fates import attrition_of_table
from spinney.cohort.flow import floor_of, flow
from spinney.cohort.groups import wanted_groups
from spinney.cohort.handover import Handover
from spinney.cohort.imported_table import finish
from spinney.cohort.impute import forward_fill_then_median
from spinney.cohort.leaving import judge_of, leave_out
from spinney.cohort.losses import FUTURE
from spinney.cohort.members import find_members
from spinney.cohort.objections import ObjectionJudge, OptOut
from spinney.cohort.pull_report import OpenRows, PullReport, PullResult
from spinney.cohort.recipes import wanted_of
from spinney.cohort.referred import with_referred
from spinney.cohort.selected_events import Maps, select_events
from spinney.cohort.vault import Vault
from spinney.cohort.without import without_objectors
from spinney.connectors.duck import has_no_room, open_bench
from spinney.connectors.fhir.check import Extent, invalid_ids
from spinney.connectors.sources import TABLE, Progress, Pulled, Source, Wanted
from spinney.errors import CohortRejected, SourceFailed
from spinney.rows.cohort import divided
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.encode import encode_label
from spinney.rows.parts import Part
from spinney.study.study import Study

PLAIN_COLUMNS = ("patient", "index_time")


@dataclass(frozen=True)
class PullPlan:
    """All that a pull may touch: nothing else of a site's settings gets here."""

    source: Source
    table_columns: tuple[str | None, str | None] | None
    """Of a finished table: where patient and index time stand; None: the source has events."""
    vault: Vault
    timezone: str
    maps: Maps
    validation: Extent
    validation_sample: int
    largest_table: int
    """In bytes of memory."""
    opt_out: OptOut = field(default_factory=OptOut)
    """Who has said no, and where that is written."""
    as_of: str | None = None
    """What counts as now, where the source's dates are shifted."""

    def moment(self, now: datetime | None) -> datetime:
        """What counts as now in a pull; `now` where the source's dates are not shifted."""
        return clock(self.as_of, self.timezone, now)


def pull(
    study: Study,
    plan: PullPlan,
    *,
    now: datetime | None = None,
    progress: Progress | None = None,
    report: PullReport | None = None,
) -> PullResult:
    """Pull a site's cohort. `now` is when the data end at the latest, unless the site says `as_of`.

    A report that is given is filled as far as the pull gets, also where it ends in CohortRejected or SourceFailed.
    """
    report = PullReport() if report is None else report
    with _pulled(study, plan, now, report, progress) as (ripe, still_open):
        cohort, unripe = _kept(ripe, still_open, study, plan.vault, report)
        if cohort is None:
            raise CohortRejected("the cohort has rows with a ripe label", 0, _why_empty(report.attrition, study))
    return PullResult(cohort, unripe, report)


def pull_open(study: Study, plan: PullPlan, *, now: datetime | None = None) -> OpenRows:
    """Pull the rows to be scored, and keep who they are until their scores are written back."""
    if plan.table_columns and None in plan.table_columns:
        raise SourceFailed("scores belong to a patient and a time; name patient_column and index_time_column")
    report = PullReport()
    with _pulled(study, plan, now, report) as (ripe, still_open):
        Handover(plan.vault, study.name).keep_identifiers(still_open["patient"])
        cohort, unripe = _kept(ripe, still_open, study, plan.vault, report)
    return OpenRows(unripe, cohort, report)


@contextmanager
def _pulled(
    study: Study, plan: PullPlan, now: datetime | None, report: PullReport, progress: Progress | None = None
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The ripe rows and those that are still open, while what they were made from is still there."""
    tell = progress or (lambda *_: None)
    with _read(study, plan, now, report, tell) as (pulled, work):
        table = _table(study, plan, pulled, work, plan.moment(now), report, tell)
        if study.imputation == "forward-fill-then-median":
            table = _imputed(table, study, plan.vault, report)
        halves = table.filter(table["ripe"]), table.filter(pc.invert(table["ripe"]))
        del table  # it may be large
        yield halves


@contextmanager
def _read(
    study: Study, plan: PullPlan, now: datetime | None, report: PullReport, tell: Progress
) -> Iterator[tuple[Pulled, Path]]:
    """What the source has for the study, without those who object, and a folder to work in.

    PermitExpired if nobody may look any more: by the true clock, also where a source's dates are shifted.
    """
    study.require_permit(datetime.now(UTC))
    if plan.as_of is not None:
        report.as_of = plan.as_of
        report.notes.append(note_on_now(plan.as_of))
    with plan.vault.staging(study.name) as staging:
        judge = judge_of(plan.opt_out, study, plan.vault, staging, clock(None, plan.timezone, now))
        pulled = plan.source.pull(_wanted(study, plan, plan.moment(now)), staging, tell)
        work = _emptied(staging / "work")
        try:
            if judge is not None:
                patient = plan.table_columns and plan.table_columns[0]
                pulled = without_objectors(pulled, judge, patient, plan.vault.folder, work)
                report.objections = leave_out(plan.vault, study, judge)
            report.notes += [*_counted(pulled, judge), *pulled.notes]
            report.files.update(pulled.held)
            report.quarantined.update({("source", reason): count for reason, count in pulled.quarantined.items()})
            yield pulled, work
        except duckdb.Error as error:  # its text may quote what a patient's record says
            if has_no_room(error):
                raise OSError(errno.ENOSPC, "no room") from None
            raise SourceFailed(f"DuckDB gave up on the events: {type(error).__name__}; is the disk full?") from None


@contextmanager
def staged_events(
    study: Study,
    plan: PullPlan,
    *,
    now: datetime | None = None,
    progress: Progress | None = None,
    report: PullReport | None = None,
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Staged]]:
    """A source's events for a study as they are before any is chosen, while they are there; no cohort comes of it."""
    tell = progress or (lambda *_: None)
    report = PullReport() if report is None else report
    with _read(study, plan, now, report, tell) as (pulled, work), open_bench(work, plan.timezone) as bench:
        invalid, _ = invalid_ids(pulled.files, plan.validation, plan.validation_sample)
        yield bench, stage(bench, pulled, work, invalid, tell)


def _wanted(study: Study, plan: PullPlan, now: datetime) -> list[Wanted]:
    if study.cohort is None or plan.table_columns:
        return [
            Wanted(TABLE, ("patient", "index_time", *(f.name for f in study.features), study.label.name), None, now)
        ]
    return [*with_referred(wanted_of(study, plan.maps.codes, now)), *wanted_groups(study, plan.maps.group_names)]


def _table(
    study: Study,
    plan: PullPlan,
    pulled: Pulled,
    work: Path,
    now: datetime,
    report: PullReport,
    progress: Progress,
) -> pa.Table:
    """The table with `ripe` as its last column."""
    with open_bench(work, plan.timezone) as bench:
        if pulled.table is not None:
            return _finished(bench, study, plan, pulled.table, report)
        invalid, report.validated = invalid_ids(pulled.files, plan.validation, plan.validation_sample)
        staged = stage(bench, pulled, work, invalid, progress)
        report.read.update(staged.read)
        report.usable.update(staged.usable)
        report.quarantined.update(staged.quarantined)
        study = matched(bench, staged.events, plan.maps.codes, study)
        relevant = select_events(bench, staged, study, plan.maps, now, work / "relevant", report)
        report.notes += _without_recording_time(report.unrecorded)
        find_members(bench, study, plan.maps.group_names, now, report)
        built = build(bench, relevant, study, plan.largest_table)
        report.attrition = built.attrition
        if built.strangers:
            report.notes.append(f"{built.strangers:,} index events are of patients whom the source does not describe")
        return built.table


def _finished(
    bench: duckdb.DuckDBPyConnection,
    study: Study,
    plan: PullPlan,
    path: Path,
    report: PullReport,
) -> pa.Table:
    until = None if plan.as_of is None else plan.moment(None)
    finished = finish(bench, path, study, *(plan.table_columns or PLAIN_COLUMNS), until)
    report.read[TABLE], report.watermark = finished.rows, finished.watermark
    report.unused += Counter({(TABLE, FUTURE): finished.future})
    report.quarantined.update(finished.quarantined)
    report.attrition = attrition_of_table(finished.table)
    report.notes += finished.notes
    return finished.table


def _counted(pulled: Pulled, judge: ObjectionJudge | None) -> Iterator[str]:
    """The source's notes that count rows, of those only who take part."""
    for words, rows in pulled.by_patient.items():
        if count := sum(rows[who] for who in rows if judge is None or not judge.out(who)):
            yield words.format(count=f"{count:,}")


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


def _why_empty(attrition: Attrition | None, study: Study) -> str:
    """For logs as well, so counts are as the flow tells them outside of the house."""
    stages = flow(attrition, floor_of(study)) if attrition else None
    if attrition is None or stages is None:
        return "nothing was found"
    began, *steps = stages[bool(attrition.source) :]
    lost = [f"{one.reason} ({one.lost.events})" for one in steps if one.lost and str(one.lost.events) != "0"]
    return f"of {began.left.events} {began.left.unit}: {', '.join(lost) or 'none'}"


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
