"""The events that the study asks for, in its own codes and with conversions for their units, in buckets of patients."""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from spinney.cohort.events import Staged, write_rows
from spinney.cohort.losses import DID_NOT, FUTURE, Conversions, Losses, event_groups, keep_answers
from spinney.cohort.pull_report import PullReport
from spinney.cohort.recipes import wanted_of
from spinney.connectors.duck import text, text_list, timestamp
from spinney.connectors.fhir.shapes import never_happened
from spinney.errors import CohortRejected
from spinney.study.definition import LASTING
from spinney.study.study import Study

BUCKET_EVENTS = 1_000_000
MOST_BUCKETS = 500


@dataclass(frozen=True)
class Maps:
    """The site's own words in the study's: codes (also coded values and sexes), units, and units that nobody wrote."""

    codes: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    assumed_units: Mapping[str, str] = field(default_factory=dict)
    """By code of the study."""
    group_names: Mapping[str, str] = field(default_factory=dict)


@dataclass
class SelectedEvents:
    """The study's events in `folder/bucket=N/`, and conversions by feature and unit."""

    folder: Path
    buckets: tuple[int, ...]
    now: datetime
    watermark: datetime
    conversions: Conversions = field(default_factory=list)

    def events(self, bucket: int | None = None) -> str:
        """SQL for the events of one bucket, or of all."""
        some = "*" if bucket is None else bucket
        return f"read_parquet({text(self.folder / f'bucket={some}' / '*.parquet')}, hive_partitioning = true)"


def select_events(
    bench: duckdb.DuckDBPyConnection,
    staged: Staged,
    study: Study,
    maps: Maps,
    now: datetime,
    folder: Path,
    report: PullReport | None = None,
) -> SelectedEvents:
    """Write the events that the study asks for; the report is told what became of all others before anything fails."""
    report = PullReport() if report is None else report
    wanted = {one.kind: one.codes for one in wanted_of(study, {}, now) if one.kind != "Patient"}
    present = {kind: codes for kind, codes in wanted.items() if kind in staged.events}
    buckets = min(1 + sum(staged.read[kind] for kind in present) // BUCKET_EVENTS, MOST_BUCKETS)
    report.notes += _absent_kinds(staged, wanted, now)
    _create_maps(bench, maps)
    _create_persons(bench, staged)
    kinds = {kind: _mapped(kind, staged.events[kind], codes, now) for kind, codes in present.items()}
    once = [f"SELECT * FROM ({events}) WHERE NOT again" for events in kinds.values()]
    keep_answers(bench, kinds, study)
    conversions = Losses(bench, staged, study, event_groups(bench, once), report).tell()
    _write(bench, [*kinds.values()], buckets, report, folder)
    filled = tuple(sorted(int(one.name.partition("=")[2]) for one in folder.glob("bucket=*")))
    report.watermark = _watermark(bench, folder, now, study)
    return SelectedEvents(folder, filled, now, report.watermark, conversions)


def _absent_kinds(staged: Staged, wanted: Mapping[str, object], now: datetime) -> list[str]:
    nobody = [] if staged.read["Patient"] else ["Patient: none in this source, so nobody's age and sex are known"]
    return nobody + [f"{kind}: none in this source up to {now:%Y-%m-%d}" for kind in wanted if not staged.read[kind]]


def _create_maps(bench: duckdb.DuckDBPyConnection, maps: Maps) -> None:
    for table, pairs in (("code_map", maps.codes), ("unit_map", maps.units), ("assumed_unit", maps.assumed_units)):
        rows = pa.table({"theirs": pa.array(pairs.keys(), pa.string()), "ours": pa.array(pairs.values(), pa.string())})
        bench.register("mapping", rows)
        bench.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM mapping")
        bench.unregister("mapping")


def _create_persons(bench: duckdb.DuckDBPyConnection, staged: Staged) -> None:
    rows = "(SELECT NULL::VARCHAR AS patient, NULL::DATE AS birth, NULL::VARCHAR AS sex, NULL::TIMESTAMP AS died, "
    rows += "false AS died_that_day, false AS died_undated, '' AS reason)"
    if staged.patients is not None:
        rows = f"read_parquet({text(staged.patients)})"
    bench.execute(
        "CREATE OR REPLACE TEMP TABLE person AS "
        "SELECT patient, birth, coalesce(m.ours, sex) AS sex, died, died_that_day, died_undated "
        f"FROM {rows} LEFT JOIN code_map m ON m.theirs = sex WHERE reason IS NULL"
    )


def _mapped(kind: str, file: Path, codes: tuple[str, ...], now: datetime) -> str:
    """SQL for the events of one kind in the study's own words; `lost` says why one does not count, if it doesn't."""
    any_of = f"WHERE code IN ({text_list(codes)})" if codes else ""
    return f"""
        SELECT * FROM (
            SELECT event, patient, kind, place, again, alone, coalesce(c.ours, e.code) AS code, "time", "until", lasted,
                recorded, known, end_known, "value", comparator,
                coalesce(w.ours, e.text) AS "text", coalesce(u.ours, nullif(e.unit, ''), a.ours) AS unit,
                status, "class", encounter, parent, discharge, CASE WHEN reason IS NOT NULL THEN reason
                    WHEN status IN ({text_list(never_happened(kind))}) THEN {text(DID_NOT)}
                    WHEN "time" > {timestamp(now)} THEN {text(FUTURE)} END AS lost
            FROM read_parquet({text(file)}) e
            LEFT JOIN code_map c ON c.theirs = e.code LEFT JOIN code_map w ON w.theirs = e.text
            LEFT JOIN unit_map u ON u.theirs = e.unit
            LEFT JOIN assumed_unit a ON a.theirs = coalesce(c.ours, e.code)
        ) {any_of}"""


def _write(bench: duckdb.DuckDBPyConnection, kinds: list[str], buckets: int, report: PullReport, folder: Path) -> None:
    if not kinds:
        raise CohortRejected("the source has events that the study asks for", advice="look at what the source delivers")
    events = " UNION ALL ".join(kinds)
    chosen = f"FROM ({events}) WHERE lost IS NULL"
    if buckets == 1:  # sharing out keeps one processor busy, the others hardly
        (folder / "bucket=0").mkdir(parents=True)
        written = write_rows(bench, f"SELECT * EXCLUDE (lost, again) {chosen}", folder / "bucket=0" / "events.parquet")
    else:
        rows = f"SELECT * EXCLUDE (lost, again), hash(patient) % {buckets} AS bucket {chosen}"
        written = write_rows(bench, rows, folder, "PARTITION_BY (bucket)")
    if not written:
        raise CohortRejected("the source has events with the study's codes", 0, _why_nothing(report))


def _watermark(bench: duckdb.DuckDBPyConnection, folder: Path, now: datetime, study: Study) -> datetime:
    """The newest moment that the data tell of, up to now. Deaths may come from a register that is ahead of the rest."""
    source, past = study.label.source, f"<= {timestamp(now)}"
    newest = [f"max({column}) FILTER ({column} {past})" for column in ('"time"', '"until"', "recorded")]
    if source is not None and source.outcome == "death":
        newest.append(f"(SELECT max(died) FILTER (died {past}) FROM person)")
    moment: datetime = bench.execute(
        f"SELECT greatest({', '.join(newest)}) "
        f"FROM read_parquet({text(folder / '*' / '*.parquet')}, hive_partitioning = true) WHERE kind <> {text(LASTING)}"
    ).fetchall()[0][0]
    return moment.replace(tzinfo=UTC)


def _why_nothing(report: PullReport) -> str:
    future = sum(count for (_, reason), count in report.unused.items() if reason == FUTURE)
    if future:
        return f"{future:,} are in the future; if the source shifts its dates, say as_of in site.yaml"
    return "map local codes in site.yaml, or look at the date range"
