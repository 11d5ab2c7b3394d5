"""A finished table of a site (a query's rows, CSV, Parquet) becomes a cohort: the study's columns, with its types."""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from connectors.bench import name, text, texts
from connectors.engine import label_words
from connectors.events import NOT_A_NUMBER
from connectors.sources import TABLE
from connectors.tables import MISSING_WORDS
from spinney.errors import SourceFailed
from spinney.settings import Feature
from spinney.study import Study


@dataclass
class Finished:
    """The table, with `ripe` as its last column; a row without an outcome is not ripe."""

    table: pa.Table
    rows: int
    quarantined: Counter[tuple[str, str]]
    watermark: datetime | None
    notes: list[str]


def finish(
    bench: duckdb.DuckDBPyConnection,
    path: Path,
    study: Study,
    patient: str | None = "patient",
    index_time: str | None = "index_time",
) -> Finished:
    """Read a table; `patient` and `index_time` are its own names for these columns."""
    source = f"read_parquet({text(path)})" if path.suffix == ".parquet" else _csv(path)
    try:
        there = [row[0] for row in bench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        _check(there, [patient, index_time, study.label.name], path)
        bench.execute(f"CREATE OR REPLACE TEMP TABLE finished AS {_typed(source, study, patient, index_time, there)}")
    except duckdb.Error as error:
        raise SourceFailed(f"{path.name} can't be read as a table ({type(error).__name__}); is it whole?") from None
    counts = dict(bench.execute("SELECT reason, count(*) FROM finished GROUP BY reason").fetchall())
    counts["broken line"] = _rejected(bench) if path.suffix != ".parquet" else 0
    newest = bench.execute("SELECT max(index_time) FROM finished WHERE reason IS NULL").fetchall()[0][0]
    notes = [f"{one.name}: no such column in the table" for one in study.features if one.name not in there]
    if patient is None:
        notes.append("the table has no patients, so every row counts as one of its own")
    return Finished(
        bench.sql("SELECT * EXCLUDE (reason) FROM finished WHERE reason IS NULL").to_arrow_table(),
        sum(counts.values()),
        Counter({(TABLE, reason): count for reason, count in counts.items() if reason is not None and count}),
        newest.replace(tzinfo=UTC) if newest else None,
        notes,
    )


def _csv(path: Path) -> str:
    missing = texts(["", "NA", "NaN", "nan", *MISSING_WORDS])
    return f"read_csv({text(path)}, all_varchar = true, header = true, store_rejects = true, nullstr = [{missing}])"


def _rejected(bench: duckdb.DuckDBPyConnection) -> int:
    return int(bench.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchall()[0][0])


def _check(there: list[str], needed: list[str | None], path: Path) -> None:
    for column in needed:
        if column is not None and column not in there:
            raise SourceFailed(f"{path.name}: column {column} is missing; it has {', '.join(there[:20])}")


def _typed(source: str, study: Study, patient: str | None, index_time: str | None, there: list[str]) -> str:
    features = [feature for feature in study.features if feature.name in there]
    columns = "".join(f"{_value(feature)} AS {name(feature.name)}, " for feature in features)
    numbers = [f"CAST({name(one.name)} AS VARCHAR)" for one in features if one.kind != "categorical"]
    broken = " OR ".join(f"({number} IS NOT NULL AND finite({number}) IS NULL)" for number in numbers) or "false"
    who = f"CAST({name(patient)} AS VARCHAR)" if patient else "CAST(row_number() OVER () AS VARCHAR)"
    when = f"CAST({name(index_time)} AS VARCHAR)" if index_time else "NULL::VARCHAR"
    outcome = f"CAST({name(study.label.name)} AS VARCHAR)"
    yes, no = label_words(study.label.positive)
    is_yes = f"{outcome} IN ({texts(study.label.positive)})"
    return f"""
        SELECT {who} AS patient, moment({when}) AS index_time, {columns}
            CASE WHEN {outcome} IS NOT NULL THEN CASE WHEN {is_yes} THEN {yes} ELSE {no} END END
                AS {name(study.label.name)},
            {outcome} IS NOT NULL AS ripe,
            CASE WHEN {who} IS NULL THEN 'no subject' WHEN broken({when}) THEN 'broken date'
                WHEN {"false" if index_time is None else f"{when} IS NULL"} THEN 'no date'
                WHEN {broken} THEN {text(NOT_A_NUMBER)} END AS reason
        FROM {source}"""


def _value(feature: Feature) -> str:
    column = f"CAST({name(feature.name)} AS VARCHAR)"
    return column if feature.kind == "categorical" else f"finite({column})"
