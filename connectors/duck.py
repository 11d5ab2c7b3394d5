"""A DuckDB connection for one pull: a memory limit, temporary files in staging, and the words our SQL uses."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from spinney.errors import SourceFailed

MEMORY = "700MB"
ROWS_AT_ONCE = 65_536  # that wait in memory for their bucket, per thread; by default eight times as many

# date_sub('year', ...) has who was born on a 29 February grow older on 28 February
# AT TIME ZONE 'UTC' and reference[9:] would mean the same as epoch_us and substr, and take twice as long
MACROS = """
CREATE TEMP MACRO zoned(t) AS (
    try_cast(CASE length(t) WHEN 4 THEN t || '-01-01' WHEN 7 THEN t || '-01' ELSE t END AS TIMESTAMPTZ)
);
CREATE TEMP MACRO has_year(t) AS (t >= '0' AND t < ':' AND substr(t, 5, 1) IN ('-', '/', ''));
CREATE TEMP MACRO moment(t) AS (CASE WHEN has_year(t) THEN make_timestamp(epoch_us(zoned(t))) END);
CREATE TEMP MACRO calendar_day(t) AS (CASE WHEN has_year(t) THEN
    try_cast(CASE length(t) WHEN 4 THEN t || '-01-01' WHEN 7 THEN t || '-01' ELSE left(t, 10) END AS DATE) END
);
CREATE TEMP MACRO vague(t) AS (t IS NOT NULL AND length(t) IN (4, 7));
CREATE TEMP MACRO is_day(t) AS (length(t) BETWEEN 8 AND 10);
CREATE TEMP MACRO age_on(born, d) AS (
    year(d) - year(born) - CASE WHEN month(d) * 100 + day(d) < month(born) * 100 + day(born) THEN 1 ELSE 0 END
);
CREATE TEMP MACRO local_day(m) AS (CAST(m AT TIME ZONE 'UTC' AS DATE));
CREATE TEMP MACRO known_from(t) AS (
    CASE WHEN length(t) > 10 THEN moment(t) WHEN has_year(t) THEN make_timestamp(epoch_us(
        zoned(t) + CASE length(t) WHEN 4 THEN INTERVAL 1 YEAR WHEN 7 THEN INTERVAL 1 MONTH ELSE INTERVAL 1 DAY END
    ) - 1) END
);
CREATE TEMP MACRO is_date(t) AS (length(t) <= 10);
CREATE TEMP MACRO broken(t) AS (t IS NOT NULL AND moment(t) IS NULL);
CREATE TEMP MACRO finite(t) AS (CASE WHEN isfinite(try_cast(t AS DOUBLE)) THEN try_cast(t AS DOUBLE) END);
CREATE TEMP MACRO key(id) AS (CASE WHEN id IS NOT NULL THEN hash(id) END);
CREATE TEMP MACRO coded(coding) AS (coalesce(coding."system", '') || '|' || coding.code);
CREATE TEMP MACRO referred(reference, kind) AS (
    nullif(regexp_extract(reference, '(?:' || kind || '/|urn:uuid:|urn:oid:)([^/|]+)', 1), '')
);
CREATE TEMP MACRO person(reference) AS (
    CASE WHEN starts_with(reference, 'Patient/') AND NOT contains(substr(reference, 9), '/')
    THEN nullif(substr(reference, 9), '')
    ELSE nullif(regexp_extract(reference, '(?:Patient/|urn:uuid:|urn:oid:)([^/|]+)', 1), '') END
);
"""


def open_bench(folder: Path, timezone: str = "UTC", memory: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """A connection that works within `memory` and `folder`. Times without an offset are taken to be in `timezone`."""
    bench = duckdb.connect()
    spill = folder / "spill"
    spill.mkdir(mode=0o700, exist_ok=True)
    bench.execute(f"SET memory_limit = {text(memory)}")
    bench.execute(f"SET temp_directory = {text(spill)}")
    bench.execute("SET preserve_insertion_order = false")
    bench.execute("SET enable_progress_bar = false")
    bench.execute(f"SET partitioned_write_flush_threshold = {ROWS_AT_ONCE}")
    try:
        bench.execute(f"SET TimeZone = {text(timezone)}")
    except duckdb.Error:
        raise SourceFailed(f"{timezone} is no time zone; use a name such as Europe/Berlin in site.yaml") from None
    bench.execute(MACROS)
    return bench


def has_no_room(error: Exception) -> bool:
    """Whether DuckDB gave up because a disk is full; it has no error of its own for that."""
    return isinstance(error, duckdb.Error) and any(words in str(error) for words in ("No space left", "File too large"))


def text(value: object) -> str:
    """A value as an SQL text literal."""
    return "'" + str(value).replace("'", "''") + "'"


def name(column: str) -> str:
    """A column's name as an SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


def text_list(values: Iterable[object]) -> str:
    """Values as text literals between commas."""
    return ", ".join(text(value) for value in values)


def timestamp(when: datetime) -> str:
    """A point in time as an SQL literal in UTC."""
    return f"TIMESTAMP {text(when.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' '))}"
