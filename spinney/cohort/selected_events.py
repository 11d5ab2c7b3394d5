"""The events that the study asks for, in its own codes and with conversions for their units, in buckets of patients.

Also what a report needs to know about them: the newest moment, codes without a match, units that don't convert.
"""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from spinney.cohort.events import Staged, write_rows
from spinney.cohort.recipes import event_features, unit_of, wanted_of
from spinney.connectors.duck import text, text_list, timestamp
from spinney.connectors.fhir.shapes import never_happened
from spinney.connectors.units import NO_UNIT, Conversion, conversion
from spinney.errors import CohortRejected
from spinney.study.definition import COUNTING, EventFeature
from spinney.study.study import Study

BUCKET_EVENTS = 1_000_000
MOST_BUCKETS = 500
SHORT_NAMES = {
    "http://loinc.org": "LOINC",
    "http://snomed.info/sct": "SNOMED CT",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://hl7.org/fhir/sid/icd-10": "ICD-10",
    "http://hl7.org/fhir/sid/cvx": "CVX",
}


@dataclass(frozen=True)
class Maps:
    """The site's own words in the study's: codes (also coded values and sexes), units, and units that nobody wrote."""

    codes: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    assumed_units: Mapping[str, str] = field(default_factory=dict)
    """By code of the study."""


@dataclass
class SelectedEvents:
    """The study's events in `folder/bucket=N/`, conversions by feature and unit, and what the report says of them."""

    folder: Path
    buckets: tuple[int, ...]
    now: datetime
    watermark: datetime
    conversions: list[tuple[int, str | None, Conversion]] = field(default_factory=list)
    quarantined: Counter[tuple[str, str]] = field(default_factory=Counter)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, reason) -> events that are neither wrong nor used."""
    unrecorded: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Kind -> events without a recording time, and all of them."""
    notes: list[str] = field(default_factory=list)
    quoting: list[str] = field(default_factory=list)
    """Notes with the source's own codes and units, which may be one patient's: for the terminal, never for a log."""

    def events(self, bucket: int | None = None) -> str:
        """SQL for the events of one bucket, or of all."""
        some = "*" if bucket is None else bucket
        return f"read_parquet({text(self.folder / f'bucket={some}' / '*.parquet')}, hive_partitioning = true)"


def select_events(
    bench: duckdb.DuckDBPyConnection, staged: Staged, study: Study, maps: Maps, now: datetime, folder: Path
) -> SelectedEvents:
    """Write the events that the study asks for, and look at them once."""
    wanted = {one.kind: one.codes for one in wanted_of(study, {}, now) if one.kind != "Patient"}
    present = {kind: codes for kind, codes in wanted.items() if kind in staged.events}
    buckets = min(1 + sum(staged.read[kind] for kind in present) // BUCKET_EVENTS, MOST_BUCKETS)
    _create_maps(bench, maps)
    _create_persons(bench, staged)
    left_out: Counter[tuple[str, str]] = Counter()
    for kind, codes in present.items():
        event = _mapped(kind, staged.events[kind], codes)
        for reason, count in bench.execute(
            f"SELECT CASE WHEN happened THEN 'in the future' ELSE 'did not happen: ' || status END, "
            f"count(DISTINCT event) FROM ({event}) "
            f'WHERE NOT (happened AND "time" <= {timestamp(now)}) GROUP BY 1'
        ).fetchall():
            left_out[kind, reason] += count
    _write(bench, [_mapped(kind, staged.events[kind], codes) for kind, codes in present.items()], buckets, now, folder)
    filled = tuple(sorted(int(one.name.partition("=")[2]) for one in folder.glob("bucket=*")))
    relevant = SelectedEvents(folder, filled, now, _watermark(bench, folder, now), left_out=left_out)
    kinds = [*(["Patient"] if staged.patients is None else []), *(kind for kind in wanted if kind not in present)]
    relevant.notes += [f"{kind}: none in this source" for kind in kinds]
    _look(bench, relevant, staged, study)
    return relevant


def _create_maps(bench: duckdb.DuckDBPyConnection, maps: Maps) -> None:
    for table, pairs in (("code_map", maps.codes), ("unit_map", maps.units), ("assumed_unit", maps.assumed_units)):
        rows = pa.table({"theirs": pa.array(pairs.keys(), pa.string()), "ours": pa.array(pairs.values(), pa.string())})
        bench.register("mapping", rows)
        bench.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM mapping")
        bench.unregister("mapping")


def _create_persons(bench: duckdb.DuckDBPyConnection, staged: Staged) -> None:
    rows = "(SELECT NULL::VARCHAR AS patient, NULL::DATE AS birth, NULL::VARCHAR AS sex, NULL::TIMESTAMP AS died, "
    rows += "false AS died_undated, '' AS reason)"
    if staged.patients is not None:
        rows = f"read_parquet({text(staged.patients)})"
    bench.execute(
        "CREATE OR REPLACE TEMP TABLE person AS "
        "SELECT patient, birth, coalesce(m.ours, sex) AS sex, died, died_undated "
        f"FROM {rows} LEFT JOIN code_map m ON m.theirs = sex WHERE reason IS NULL"
    )


def _mapped(kind: str, file: Path, codes: tuple[str, ...]) -> str:
    """SQL for the good events of one kind in the study's own words."""
    any_of = f"WHERE code IN ({text_list(codes)})" if codes else ""
    return f"""
        SELECT * FROM (
            SELECT event, patient, kind, coalesce(c.ours, e.code) AS code, "time", "until", lasted, recorded, known,
                end_known, "value", comparator,
                coalesce(w.ours, e.text) AS "text", coalesce(u.ours, nullif(e.unit, ''), a.ours) AS unit,
                status, "class", encounter, parent, discharge,
                status IS NULL OR status NOT IN ({text_list(never_happened(kind))}) AS happened
            FROM read_parquet({text(file)}) e
            LEFT JOIN code_map c ON c.theirs = e.code LEFT JOIN code_map w ON w.theirs = e.text
            LEFT JOIN unit_map u ON u.theirs = e.unit
            LEFT JOIN assumed_unit a ON a.theirs = coalesce(c.ours, e.code)
            WHERE reason IS NULL
        ) {any_of}"""


def _write(bench: duckdb.DuckDBPyConnection, kinds: list[str], buckets: int, now: datetime, folder: Path) -> None:
    if not kinds:
        raise CohortRejected("the source has events that the study asks for", advice="look at what the source delivers")
    events = " UNION ALL ".join(kinds)
    chosen = f'FROM ({events}) WHERE happened AND "time" <= {timestamp(now)}'
    if buckets == 1:  # sharing out keeps one processor busy, the others hardly
        (folder / "bucket=0").mkdir(parents=True)
        written = write_rows(bench, f"SELECT * EXCLUDE (happened) {chosen}", folder / "bucket=0" / "events.parquet")
    else:
        rows = f"SELECT * EXCLUDE (happened), hash(patient) % {buckets} AS bucket {chosen}"
        written = write_rows(bench, rows, folder, "PARTITION_BY (bucket)")
    if not written:
        raise CohortRejected(
            "the source has events with the study's codes", 0, "map local codes in site.yaml, or look at the date range"
        )


def _watermark(bench: duckdb.DuckDBPyConnection, folder: Path, now: datetime) -> datetime:
    """The newest moment that the data tell of, up to now."""
    newest = ", ".join(
        f"max({column}) FILTER ({column} <= {timestamp(now)})" for column in ('"time"', '"until"', "recorded")
    )
    moment: datetime = bench.execute(
        f"SELECT greatest({newest}, (SELECT max(died) FILTER (died <= {timestamp(now)}) FROM person)) "
        f"FROM read_parquet({text(folder / '*' / '*.parquet')}, hive_partitioning = true)"
    ).fetchall()[0][0]
    return moment.replace(tzinfo=UTC)


def _look(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, staged: Staged, study: Study) -> None:
    """Count by kind, code and unit once, and answer every question from these counts."""
    counts = bench.execute(
        f'SELECT kind, code, unit, count(*), count("value"), count(*) - count(recorded) FROM {relevant.events()} '
        "GROUP BY kind, code, unit ORDER BY kind, code, unit"
    ).fetchall()
    for kind in sorted({row[0] for row in counts}):
        rows = [row for row in counts if row[0] == kind]
        relevant.unrecorded[kind] = (sum(row[5] for row in rows), sum(row[3] for row in rows))
    problems: dict[tuple[str, str, str | None, str, str], int] = {}
    for place, source in event_features(study).items():
        codes = frozenset(source.codes)
        mine = [row for row in counts if row[0] == source.kind and (not codes or row[1] in codes)]
        if source.codes and not mine and source.kind in staged.events:
            relevant.quoting += [_without_match(bench, staged, source.kind, code) for code in source.codes]
        relevant.notes += _emptiness(source, mine)
        target = unit_of(study, place)
        for kind, code, unit, _, values, _ in mine:
            if not values:
                continue
            outcome = Conversion() if target is None else conversion(unit, target, source.molar_mass)
            if isinstance(outcome, Conversion):
                relevant.conversions.append((place, unit, outcome))
            else:
                problems[kind, code, unit, target or "", outcome] = values
    seen: set[tuple[str, str, str | None]] = set()
    for (kind, code, unit, target, reason), values in problems.items():
        if (kind, code, unit) not in seen:  # two features may ask for the same values
            relevant.quarantined[kind, reason] += values
            seen.add((kind, code, unit))
        relevant.quoting.append(_unit_note(code, unit, target, reason, values))


def _unit_note(code: str, unit: str | None, target: str, reason: str, values: int) -> str:
    if reason == NO_UNIT:
        return f"{short(code)}: {values:,} values without a unit; say which in site.yaml under assumed_units"
    shown = unit if unit and len(unit) <= 30 else "(long text)"
    return f"{short(code)}: {values:,} values in {shown}, not {target} ({reason}); map it under units in site.yaml"


def _emptiness(source: EventFeature, mine: Sequence[Sequence[Any]]) -> list[str]:
    """Why a feature has no value at all, though its codes occur: never with a number."""
    if mine and source.value == "number" and source.statistic not in COUNTING and not sum(row[4] for row in mine):
        total = sum(row[3] for row in mine)
        return [f"{' or '.join(map(short, source.codes))}: {total:,} {plural(source.kind)}, but none has a number"]
    return []


def _without_match(bench: duckdb.DuckDBPyConnection, staged: Staged, kind: str, code: str) -> str:
    """One line that says that a code never occurs, and which codes look like it."""
    nearest = bench.execute(
        f"SELECT code, count(*) FROM read_parquet({text(staged.events[kind])}) WHERE code IS NOT NULL GROUP BY code "
        f"ORDER BY levenshtein(split_part(code, '|', 2), {text(code.partition('|')[2])}), count(*) DESC, code LIMIT 3"
    ).fetchall()
    names = ", ".join(f"{short(other)} ({count:,})" for other, count in nearest) or "nothing"
    return f"{short(code)}: 0 of {staged.read[kind]:,} {plural(kind)}; nearest in your data: {names}"


def short(code: str) -> str:
    """A code as people say it: LOINC 4548-4."""
    system, _, word = code.partition("|")
    return f"{SHORT_NAMES.get(system, system)} {word}".strip()


def plural(kind: str) -> str:
    """MedicationRequest -> medication requests."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip() + "s"
