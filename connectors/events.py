"""FHIR resources and SQL rows become events: one Parquet file per kind, in which bad rows carry a reason.

A row with a reason is in quarantine: it is counted and never used. DuckDB does the work, a whole file at a time.
"""
# ruff: noqa: S608 (SQL made of our own words; file names and settings go through bench.text)

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from connectors.bench import name, text, texts
from connectors.fhir_shapes import PATIENT_MEMBERS, SHAPES, Shape
from connectors.sources import EVENT_COLUMNS, PATIENT_COLUMNS, Progress, Pulled
from spinney.errors import SourceFailed

LARGEST_RESOURCE = 64 * 2**20
NOT_A_NUMBER = "value is not a number"


@dataclass
class Staged:
    """Events and patients in staging, what was read, and what is in quarantine."""

    events: dict[str, Path] = field(default_factory=dict)
    patients: Path | None = None
    read: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, reason) -> how many."""


def stage(
    bench: duckdb.DuckDBPyConnection,
    pulled: Pulled,
    folder: Path,
    invalid: Mapping[str, Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> Staged:
    """Parse what a source left. `invalid` has the ids, by kind, that failed validation."""
    staged = Staged()
    for kind, files in pulled.files.items():
        if not files:
            continue
        out = folder / f"{kind}.events.parquet"
        try:
            _write(bench, _rows(bench, kind, files, (invalid or {}).get(kind, ())), out)
            _keep_newest(bench, kind, out)
        except duckdb.Error as error:
            raise SourceFailed(
                f"{kind}: {files[0].name} can't be parsed ({type(error).__name__}); is it whole?"
            ) from None
        _count(bench, staged, kind, out)
        if progress is not None:
            progress(kind, staged.read[kind], staged.read[kind])
        if kind == "Patient":
            staged.patients = out
        else:
            staged.events[kind] = out
    return staged


def _write(bench: duckdb.DuckDBPyConnection, rows: str, out: Path) -> None:
    bench.execute(f"COPY ({rows}) TO {text(out)} (FORMAT parquet, COMPRESSION zstd)")


def _rows(bench: duckdb.DuckDBPyConnection, kind: str, files: Sequence[Path], invalid: Sequence[str]) -> str:
    if all(file.suffix == ".parquet" for file in files):
        return _from_tables(bench, kind, files)
    if kind == "Patient":
        return _patients_from_fhir(files, invalid)
    if kind not in SHAPES:
        raise SourceFailed(f"{kind} can't be made into events; known are {', '.join(SHAPES)}")
    return _events_from_fhir(kind, SHAPES[kind], files, invalid)


def _ndjson(files: Iterable[Path], members: Mapping[str, str]) -> str:
    columns = ", ".join(f"{name(member)}: {text(kind)}" for member, kind in members.items())
    return (
        f"read_json([{texts(files)}], columns = {{{columns}}}, format = 'newline_delimited', ignore_errors = true, "
        f"maximum_object_size = {LARGEST_RESOURCE})"
    )


def _events_from_fhir(kind: str, shape: Shape, files: Sequence[Path], invalid: Sequence[str]) -> str:
    return f"""
    WITH resource AS (
        SELECT resourceType, id, moment(meta.lastUpdated) AS updated, person({shape.subject}.reference) AS patient,
            {shape.time} AS time_text, {shape.until} AS until_text, {shape.recorded} AS recorded_text,
            {shape.status} AS status, {shape.encounter_class} AS "class", {shape.parts()} AS parts
        FROM {_ndjson(files, shape.columns())}
    ), spread AS (
        SELECT * EXCLUDE (parts), unnest(parts) AS part, generate_subscripts(parts, 1) AS place FROM resource
    )
    SELECT patient, {text(kind)} AS kind, part.code, moment(time_text) AS "time", moment(until_text) AS "until",
        moment(recorded_text) AS recorded, finite(part.number) AS "value", part.words AS "text", part.unit,
        status, "class", key(id) AS id, updated, place,
        CASE {_envelope_reasons(kind, invalid)}
            WHEN patient IS NULL THEN 'no subject'
            {_event_reasons("part.number")}
        END AS reason
    FROM spread
    """


def _envelope_reasons(kind: str, invalid: Sequence[str]) -> str:
    reasons = f"""
            WHEN resourceType IS NULL THEN 'not a FHIR resource'
            WHEN resourceType <> {text(kind)} THEN 'another resource type'
            WHEN id IS NULL THEN 'no id'"""
    return reasons + (f" WHEN id IN ({texts(invalid)}) THEN 'not valid FHIR'" if invalid else "")


def _event_reasons(number: str) -> str:
    return f"""
            WHEN time_text IS NULL THEN 'no date'
            WHEN broken(time_text) OR broken(until_text) OR broken(recorded_text) THEN 'broken date'
            WHEN {number} IS NOT NULL AND finite({number}) IS NULL THEN {text(NOT_A_NUMBER)}"""


def _patients_from_fhir(files: Sequence[Path], invalid: Sequence[str]) -> str:
    return f"""
    SELECT id AS patient, calendar_day(birthDate) AS birth, gender AS sex, moment(deceasedDateTime) AS died,
        coalesce(deceasedBoolean, false) AND deceasedDateTime IS NULL AS died_undated,
        key(id) AS id, moment(meta.lastUpdated) AS updated, 1 AS place,
        CASE {_envelope_reasons("Patient", invalid)}
            WHEN birthDate IS NOT NULL AND calendar_day(birthDate) IS NULL THEN 'broken date'
            WHEN broken(deceasedDateTime) THEN 'broken date'
        END AS reason
    FROM {_ndjson(files, PATIENT_MEMBERS)}
    """


def _from_tables(bench: duckdb.DuckDBPyConnection, kind: str, files: Sequence[Path]) -> str:
    """Rows of a database, whose columns may all be text; a column that is not there is null."""
    source = f"read_parquet([{texts(files)}], union_by_name = true)"
    there = {row[0] for row in bench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    wanted = PATIENT_COLUMNS if kind == "Patient" else EVENT_COLUMNS
    read = ", ".join(
        f"CAST({name(column) if column in there else 'NULL'} AS VARCHAR) AS {_read_as(column)}" for column in wanted
    )
    return (_PATIENT_ROWS if kind == "Patient" else _EVENT_ROWS).format(
        read=read, source=source, kind=text(kind), reasons=_event_reasons("number")
    )


def _read_as(column: str) -> str:
    return {"time": "time_text", "until": "until_text", "recorded": "recorded_text", "value": "number"}.get(
        column, name(column)
    )


_EVENT_ROWS = """
    WITH row AS (SELECT {read} FROM {source})
    SELECT patient, {kind} AS kind, code, moment(time_text) AS "time", moment(until_text) AS "until",
        moment(recorded_text) AS recorded, finite(number) AS "value", "text", unit, status, "class",
        NULL::UBIGINT AS id, NULL::TIMESTAMP AS updated, 1 AS place,
        CASE WHEN patient IS NULL THEN 'no subject' {reasons} END AS reason
    FROM row
    """
_PATIENT_ROWS = """
    WITH row AS (SELECT {read} FROM {source})
    SELECT patient, calendar_day(birth) AS birth, sex, moment(died) AS died, false AS died_undated,
        key(patient) AS id, NULL::TIMESTAMP AS updated, 1 AS place,
        CASE WHEN patient IS NULL THEN 'no id'
            WHEN birth IS NOT NULL AND calendar_day(birth) IS NULL THEN 'broken date'
            WHEN broken(died) THEN 'broken date'
        END AS reason
    FROM row
    """


def _keep_newest(bench: duckdb.DuckDBPyConnection, kind: str, out: Path) -> None:
    """Files that overlap hold a resource several times: keep its newest version, once."""
    repeated = bench.execute(
        f"SELECT count(id) - count(DISTINCT id) FROM read_parquet({text(out)}) WHERE place = 1"
    ).fetchall()[0][0]
    if not repeated:
        return
    whole = out.with_suffix(".all")
    out.rename(whole)
    order = "updated DESC NULLS LAST, (reason IS NULL) DESC, " + ("birth, sex, died" if kind == "Patient" else _CONTENT)
    _write(
        bench,
        f"""
        WITH event AS (SELECT * FROM read_parquet({text(whole)})),
        again AS (SELECT id FROM event WHERE place = 1 GROUP BY id HAVING count(*) > 1)
        SELECT * FROM event WHERE id IS NULL OR id NOT IN (SELECT id FROM again WHERE id IS NOT NULL)
        UNION ALL BY NAME
        SELECT event.* EXCLUDE (newest) FROM (
            SELECT *, max(coalesce(updated, TIMESTAMP '0001-01-01')) OVER (PARTITION BY id) AS newest
            FROM event WHERE id IN (SELECT id FROM again WHERE id IS NOT NULL)
        ) event
        WHERE coalesce(updated, TIMESTAMP '0001-01-01') = newest
        QUALIFY row_number() OVER (PARTITION BY id, place ORDER BY {order}) = 1
        """,
        out,
    )
    whole.unlink()


_CONTENT = 'patient, code, "time", "until", recorded, "value", "text", unit, status, "class"'


def _count(bench: duckdb.DuckDBPyConnection, staged: Staged, kind: str, out: Path) -> None:
    counts = bench.execute(
        f"SELECT reason, count(*) FILTER (place = 1), count(*) FROM read_parquet({text(out)}) GROUP BY reason"
    )
    for reason, resources, rows in counts.fetchall():
        staged.read[kind] += resources
        if reason is not None:
            staged.quarantined[kind, reason] += rows if reason == NOT_A_NUMBER else resources
