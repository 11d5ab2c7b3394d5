"""FHIR resources and SQL rows become events: one Parquet file per kind, in which bad rows carry a reason.

A row with a reason is in quarantine: it is counted and never used. DuckDB does the work, a whole file at a time.
"""
# ruff: noqa: S608 (SQL made of our own words; file names and settings go through bench.text)

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from spinney.cohort.groups import forget_groups, note_groups, note_member_rows
from spinney.cohort.referred import MEDICATION, forget_referred, in_order, note_medications, note_stays
from spinney.connectors.duck import has_no_room, name, text, text_list
from spinney.connectors.fhir import shape_sql
from spinney.connectors.fhir.shapes import OLDER, SHAPES, Shape
from spinney.connectors.fhir.shelf import lines_in
from spinney.connectors.sources import EVENT_COLUMNS, GROUP, PATIENT_COLUMNS, Progress, Pulled
from spinney.errors import SourceFailed

LARGEST_RESOURCE = 64 * 2**20
USUAL_RESOURCE = 4 * 2**20  # DuckDB gives a processor so many bytes at a time, and a small pull has few
ROW_GROUP = 20_480  # and so many rows; by default more than a small pull has
NOT_A_NUMBER = "value is not a number"


@dataclass
class Staged:
    """Events and patients in staging, what was read, and what is in quarantine."""

    events: dict[str, Path] = field(default_factory=dict)
    patients: Path | None = None
    read: Counter[str] = field(default_factory=Counter)
    usable: Counter[str] = field(default_factory=Counter)
    """Of what was read, such as are not in quarantine as a whole; every kind that was read has a number."""
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
    forget_referred(bench)
    forget_groups(bench)
    for kind in in_order(pulled.files):
        files = pulled.files[kind]
        if not files:
            continue
        out = folder / f"{kind}.events.parquet"
        _note_invalid(bench, (invalid or {}).get(kind, ()))
        try:
            if kind == MEDICATION:
                _stage_medications(bench, staged, files)
                continue
            if kind == GROUP:
                _stage_groups(bench, staged, files)
                continue
            _parse(bench, kind, files, folder, out)
            _keep_newest(bench, kind, files, out)
            if kind == "Encounter" and any(other in pulled.files for other in DATED):
                note_stays(bench, out)
        except (duckdb.Error, EOFError, zlib.error, gzip.BadGzipFile) as error:
            if has_no_room(error):  # no fault of the file
                raise
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


def _stage_medications(bench: duckdb.DuckDBPyConnection, staged: Staged, files: Sequence[Path]) -> None:
    read, broken = note_medications(bench, _ndjson(files, shape_sql.MEDICATION_MEMBERS, LARGEST_RESOURCE))
    staged.read[MEDICATION], staged.usable[MEDICATION] = read + broken, read
    if broken:
        staged.quarantined[MEDICATION, "not a FHIR resource"] = broken


def _stage_groups(bench: duckdb.DuckDBPyConnection, staged: Staged, files: Sequence[Path]) -> None:
    of_rows = all(file.suffix == ".parquet" for file in files)
    resources = "" if of_rows else _ndjson(files, shape_sql.GROUP_MEMBERS, LARGEST_RESOURCE)
    counts = note_member_rows(bench, files) if of_rows else note_groups(bench, resources)
    staged.read[GROUP], staged.usable[GROUP] = sum(counts.values()), counts.pop("", 0)
    staged.quarantined.update({(GROUP, reason): count for reason, count in counts.items()})


def _parse(bench: duckdb.DuckDBPyConnection, kind: str, files: Sequence[Path], folder: Path, out: Path) -> None:
    """Large resources are looked out for only where one came, since all processors are busy only with small ones."""
    for largest in (USUAL_RESOURCE, LARGEST_RESOURCE):
        try:
            write_rows(bench, _rows(bench, kind, files, largest), out)
            return
        except duckdb.InvalidInputException:
            continue
    # one endless line must not cost the night
    write_rows(bench, _rows(bench, kind, _with_lines_cut(files, folder), LARGEST_RESOURCE), out)


def _with_lines_cut(files: Sequence[Path], folder: Path) -> list[Path]:
    """The same lines; what is longer than any resource should be is cut off, so that it counts as no resource."""
    cut = []
    for number, file in enumerate(files):
        if file.suffix == ".parquet":
            cut.append(file)
            continue
        cut.append(folder / f"{number}-cut.ndjson")
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines, cut[-1].open("wb") as short:
            short.writelines(line + b"\n" for line in lines_in(lines))
    return cut


def write_rows(bench: duckdb.DuckDBPyConnection, rows: str, out: Path, how: str = f"ROW_GROUP_SIZE {ROW_GROUP}") -> int:
    """Keep the rows of a query as Parquet, and say how many there are."""
    copied = bench.execute(f"COPY ({rows}) TO {text(out)} (FORMAT parquet, COMPRESSION zstd, {how})")
    return int(copied.fetchall()[0][0])


def _note_invalid(bench: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> None:
    bench.register("ids", pa.table({"id": pa.array(ids, pa.string())}))
    bench.execute("CREATE OR REPLACE TEMP TABLE invalid AS SELECT id FROM ids")
    bench.unregister("ids")


def _rows(bench: duckdb.DuckDBPyConnection, kind: str, files: Sequence[Path], largest: int) -> str:
    if all(file.suffix == ".parquet" for file in files):
        return _from_tables(bench, kind, files)
    if kind == "Patient":
        return _patients_from_fhir(_ndjson(files, shape_sql.PATIENT_MEMBERS, largest))
    if kind not in SHAPES:
        raise SourceFailed(f"{kind} can't be made into events; known are {', '.join(SHAPES)}")
    return _events_from_fhir(kind, SHAPES[kind], _ndjson(files, shape_sql.columns(SHAPES[kind]), largest))


def _ndjson(files: Iterable[Path], members: Mapping[str, str], largest: int) -> str:
    columns = ", ".join(f"{name(member)}: {text(kind)}" for member, kind in members.items())
    return (
        f"read_json([{text_list(files)}], columns = {{{columns}}}, format = 'newline_delimited', ignore_errors = true, "
        f"maximum_object_size = {largest})"
    )


def _events_from_fhir(kind: str, shape: Shape, resources: str) -> str:
    drug = shape_sql.medication_reference(shape)
    known_drugs = f"LEFT JOIN medication m ON m.drug_key = key(referred({drug}, 'Medication'))"
    of_encounter = ('part."class"', "part.discharge") if kind == "Encounter" else (shape_sql.NO_TEXT,) * 2
    return f"""
    WITH whole AS (SELECT {"*, m.codings AS drug, drug_key" if shape.medication else "*, 0 AS drug_key"}
        FROM {resources} {known_drugs if shape.medication else ""}
    ), resource AS (
        SELECT resourceType, id, meta.lastUpdated AS updated_text, meta.versionId AS version,
            {shape.subject}.reference AS reference,
            {shape_sql.first(shape.time)} AS time_text, {shape_sql.first(shape.until)} AS until_text,
            {shape_sql.first(shape.recorded)} AS recorded_text, {shape_sql.status(shape)} AS status,
            {shape_sql.is_older(shape)} AS older, {drug} AS drug_reference, drug_key,
            key(referred({shape_sql.first(shape.encounter, ".reference")}, 'Encounter')) AS encounter,
            key(referred({shape_sql.first(shape.parent, ".reference")}, 'Encounter')) AS parent,
            {shape_sql.parts_sql(shape)} AS parts
        FROM whole
    ), timed AS (
        SELECT *, person(reference) AS patient, {_moments(shape)}, moment(updated_text) AS updated
        FROM resource {_STAYS if shape.dated_by_encounter else ""}
    ), spread AS (
        SELECT * EXCLUDE (parts), unnest(parts) AS part, generate_subscripts(parts, 1) AS place, len(parts) = 1 AS alone
        FROM timed
    ), counted AS (SELECT *, part.number AS number, finite(part.number) AS "value" FROM spread)
    SELECT CASE part.nth WHEN 0 THEN key(id) ELSE hash(id, part.nth) END AS event, patient, {text(kind)} AS kind,
        part.code, "time", "until", ended, lasted, recorded, known, end_known, "value",
        {_BOUND.format("part.comparator")}, part.words AS "text", part.again, alone, part.unit, status,
        {of_encounter[0]} AS "class", encounter, parent, {of_encounter[1]} AS discharge, key(id) AS id, updated,
        try_cast(version AS BIGINT) AS version, place,
        CASE {_envelope_reasons(kind)} WHEN older THEN {text(OLDER)}
            WHEN drug_key IS NULL AND part.code IS NULL AND starts_with(drug_reference, '#') IS false
                THEN 'its Medication is not there'
            {_EVENT_REASONS} {_INVALID} END AS reason
    FROM counted
    """


_BOUND = "nullif(nullif({}, ''), '=') AS comparator"
DATED = tuple(kind for kind, shape in SHAPES.items() if shape.dated_by_encounter)
_STAYS = "LEFT JOIN stay ON stay.encounter_event = encounter AND time_text IS NULL AND recorded_text IS NULL"


def _moments(shape: Shape) -> str:
    """When it happened, ended and was entered; and from when on it, and its end, are known: a day from its end.

    An end that is written as a day lies at the end of that day. What was entered before it happened is not known to
    have happened before its own time.
    """
    end = ", known_from(until_text)" if shape.known_at_its_end else ""
    told = f"greatest(known_from(time_text){end})"
    known = f"CASE WHEN known_from(recorded_text) >= moment(time_text) THEN known_from(recorded_text) ELSE {told} END"
    began = "moment(time_text)"
    if shape.dated_by_encounter:
        known, began = f"CASE WHEN time_text IS NULL THEN stay_known ELSE {known} END", f"coalesce({began}, stay_end)"
    return f"""
            {began} AS "time", known_from(until_text) AS "until", moment(until_text) AS ended,
            moment(recorded_text) AS recorded,
            {known} AS known, greatest({known}, known_from(until_text)) AS end_known, {_LASTED} AS lasted"""


# in days; whole ones where either end is a day
_LASTED = """CASE WHEN is_date(time_text) OR is_date(until_text)
                THEN CAST(date_diff('day', local_day(moment(time_text)), local_day(moment(until_text))) AS DOUBLE)
                ELSE epoch_us(moment(until_text) - moment(time_text)) / 86400e6 END"""


def _envelope_reasons(kind: str) -> str:
    return f"""
            WHEN resourceType IS NULL THEN 'not a FHIR resource'
            WHEN resourceType <> {text(kind)} THEN 'another resource type'
            WHEN id IS NULL THEN 'no id'"""


# What a validator says of a resource, after all that says more.
_INVALID = "WHEN id IN (SELECT id FROM invalid) THEN 'not valid FHIR'"
_EVENT_REASONS = f"""
            WHEN patient IS NULL THEN 'no subject'
            WHEN time_text IS NULL AND "time" IS NULL AND encounter IS NOT NULL
                THEN 'no date, and its encounter is not there'
            WHEN time_text IS NULL AND "time" IS NULL THEN 'no date'
            WHEN "time" IS NULL THEN 'broken date'
            WHEN until_text IS NOT NULL AND "until" IS NULL THEN 'broken date'
            WHEN recorded_text IS NOT NULL AND recorded IS NULL THEN 'broken date'
            WHEN number IS NOT NULL AND "value" IS NULL THEN {text(NOT_A_NUMBER)}"""


# A year or a month is too little to compare a death with; a day is compared with days.
_DIED = """CASE WHEN NOT vague({at}) THEN moment({at}) END AS died, is_day({at}) AS died_that_day"""


def _patients_from_fhir(resources: str) -> str:
    return f"""
    SELECT id AS patient, calendar_day(birthDate) AS birth, gender AS sex, {_DIED.format(at="deceasedDateTime")},
        coalesce(deceasedBoolean, false) AND deceasedDateTime IS NULL OR vague(deceasedDateTime) AS died_undated,
        key(id) AS id, moment(meta.lastUpdated) AS updated, try_cast(meta.versionId AS BIGINT) AS version, 1 AS place,
        CASE {_envelope_reasons("Patient")}
            WHEN birthDate IS NOT NULL AND calendar_day(birthDate) IS NULL THEN 'broken date'
            WHEN broken(deceasedDateTime) THEN 'broken date'
            {_INVALID}
        END AS reason
    FROM {resources}
    """


def _from_tables(bench: duckdb.DuckDBPyConnection, kind: str, files: Sequence[Path]) -> str:
    """Rows of a database, whose columns may all be text; a column that is not there is null."""
    source = f"read_parquet([{text_list(files)}], union_by_name = true, filename = true, file_row_number = true)"
    there = {row[0] for row in bench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    wanted = PATIENT_COLUMNS if kind == "Patient" else EVENT_COLUMNS
    shape = SHAPES.get(kind, Shape("", (), ()))
    instead = {"time": "recorded"} if {*shape.time} & {*shape.recorded} else {}
    read = ", ".join(
        f"{_as_text(column, instead.get(column, ''), there)} AS {name(_READ_AS.get(column, column))}"
        for column in wanted
    )
    if kind == "Patient":
        return _PATIENT_ROWS.format(read=read, source=source, died=_DIED.format(at="row.died"))
    stays = _STAYS if shape.dated_by_encounter else ""
    words = {"read": read, "source": source, "kind": text(kind), "stays": stays, "bound": _BOUND.format("comparator")}
    return _EVENT_ROWS.format(**words, moments=_moments(shape), reasons=_EVENT_REASONS)


def _as_text(column: str, instead: str, there: Collection[str]) -> str:
    found = [f"CAST({name(one)} AS VARCHAR)" for one in (column, instead) if one in there]
    return f"coalesce({', '.join(found)})" if found else "NULL::VARCHAR"


_READ_AS = {
    "event": "id",
    "updated": "updated_text",
    "time": "time_text",
    "until": "until_text",
    "recorded": "recorded_text",
    "value": "number",
}
_EVENT_ROWS = """
    WITH row AS (
        SELECT * EXCLUDE (encounter, parent), key(encounter) AS encounter, key(parent) AS parent,
            hash(time_text, until_text, recorded_text, number, comparator, unit, status, encounter, parent, patient)
                AS content
        FROM (SELECT {read}, hash(filename, file_row_number) AS row_itself FROM {source})
    ), timed AS (
        SELECT *, {moments}, moment(updated_text) AS updated, finite(number) AS "value" FROM row {stays}
    )
    SELECT coalesce(key(id), row_itself) AS event, patient, {kind} AS kind, code, "time", "until", ended, lasted,
        recorded, known, end_known, "value", {bound}, "text", false AS again, id IS NULL AS alone, unit, status,
        "class", encounter, parent, discharge, key(id) AS id, updated, NULL::BIGINT AS version, 1 AS place,
        CASE {reasons} END AS reason, content
    FROM timed
    """
_PATIENT_ROWS = """
    WITH row AS (SELECT {read} FROM {source})
    SELECT patient, calendar_day(birth) AS birth, sex, {died}, vague(row.died) AS died_undated,
        key(patient) AS id, NULL::TIMESTAMP AS updated, NULL::BIGINT AS version, 1 AS place,
        CASE WHEN patient IS NULL THEN 'no id'
            WHEN birth IS NOT NULL AND calendar_day(birth) IS NULL THEN 'broken date'
            WHEN broken(row.died) THEN 'broken date'
        END AS reason
    FROM row
    """


def _keep_newest(bench: duckdb.DuckDBPyConnection, kind: str, files: Sequence[Path], out: Path) -> None:
    """Files that overlap hold a resource several times: keep its newest version, once."""
    repeated = bench.execute(
        f"SELECT count(id) - count(DISTINCT id) FROM read_parquet({text(out)}) WHERE place = 1"
    ).fetchall()[0][0]
    if not repeated:
        return
    whole = out.with_suffix(".all")
    out.rename(whole)
    if kind != "Patient" and all(file.suffix == ".parquet" for file in files):
        write_rows(bench, _NEWEST_ROWS.format(rows=text(whole), version=_VERSION), out)
        whole.unlink()
        return
    event = "* REPLACE (false AS alone)" if kind != "Patient" else "*"  # copies may differ in how much they say
    order = "updated DESC NULLS LAST, (reason IS NULL) DESC, " + ("birth, sex, died" if kind == "Patient" else _CONTENT)
    write_rows(
        bench,
        f"""
        WITH event AS (SELECT {event} FROM read_parquet({text(whole)})),
        again AS (SELECT id FROM event WHERE place = 1 GROUP BY id HAVING count(*) > 1)
        SELECT * FROM event WHERE id IS NULL OR id NOT IN (SELECT id FROM again WHERE id IS NOT NULL)
        UNION ALL BY NAME
        SELECT event.* EXCLUDE (newest) FROM (
            SELECT *, max({_VERSION}) OVER (PARTITION BY id) AS newest
            FROM event WHERE id IN (SELECT id FROM again WHERE id IS NOT NULL)
        ) event
        WHERE {_VERSION} = newest
        QUALIFY row_number() OVER (PARTITION BY id, place ORDER BY {order}) = 1
        """,
        out,
    )
    whole.unlink()


_VERSION = "row(coalesce(updated, TIMESTAMP '0001-01-01'), coalesce(version, -1))"
# what cannot be told apart is one event; rows that say different things of one event can't all be right
_NEWEST_ROWS = """
    WITH newest AS (
        SELECT * FROM read_parquet({rows})
        QUALIFY id IS NULL OR {version} = max({version}) OVER (PARTITION BY id)
    )
    SELECT * EXCLUDE (content, reason),
        CASE WHEN reason IS NULL AND min(content) OVER (PARTITION BY event) <> max(content) OVER (PARTITION BY event)
            THEN 'rows of one event differ' ELSE reason END AS reason
    FROM newest
    QUALIFY row_number() OVER (PARTITION BY event, code, "text", "class", discharge ORDER BY content) = 1
    """
_CONTENT = 'patient, code, "time", "until", recorded, "value", "text", unit, status, "class"'


def _count(bench: duckdb.DuckDBPyConnection, staged: Staged, kind: str, out: Path) -> None:
    counts = bench.execute(
        f"SELECT reason, count(*) FILTER (place = 1), count(*) FROM read_parquet({text(out)}) GROUP BY reason"
    )
    staged.usable[kind] += 0
    for reason, resources, rows in counts.fetchall():
        staged.read[kind] += resources
        if reason is None or reason == NOT_A_NUMBER:  # a component without a number says nothing of the others
            staged.usable[kind] += resources
        if reason is not None:
            staged.quarantined[kind, reason] += rows if reason == NOT_A_NUMBER else resources
