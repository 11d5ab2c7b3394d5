"""A finished table of a site (a query's rows, CSV, Parquet) becomes a cohort: the study's columns, with its types."""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from spinney.cohort.engine import label_words
from spinney.cohort.events import NOT_A_NUMBER
from spinney.cohort.losses import FUTURE
from spinney.connectors.duck import name, text, text_list, timestamp
from spinney.connectors.sources import TABLE
from spinney.connectors.tables import MISSING_WORDS, NO_NUMBER, TableForm, form_of
from spinney.errors import CohortRejected, SourceFailed
from spinney.rows.encode import DEFAULT_POSITIVE, PLAIN_ANSWERS, column_in
from spinney.rows.read_as import reader
from spinney.study.settings import Feature, Label
from spinney.study.study import Study


@dataclass
class ImportedTable:
    """The table, with `ripe` as its last column; a row without an outcome is not ripe."""

    table: pa.Table
    rows: int
    quarantined: Counter[tuple[str, str]]
    future: int
    """Rows that are right, and in the future."""
    watermark: datetime | None
    notes: list[str]


def finish(
    bench: duckdb.DuckDBPyConnection,
    path: Path,
    study: Study,
    patient: str | None = "patient",
    index_time: str | None = "index_time",
    until: datetime | None = None,
) -> ImportedTable:
    """Read a table; `patient` and `index_time` are its own names for these columns.

    Rows after `until` are in the future; without it a table's own times are taken as they are.
    """
    form = form_of(path)
    source = f"read_parquet({text(path)})" if path.suffix == ".parquet" else _csv(path, form)
    try:
        there = [row[0] for row in bench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        _check(there, [patient, index_time], path)
        asked: tuple[Feature | Label, ...] = (*study.features, study.label)
        called = {one.name: column for one in asked if (column := _column_of(one, there))}
        _check(list(called), [study.label.name], path, there)
        _check_answers(bench, source, study, called[study.label.name])
        _read_words(bench, source, study, called)
        typed = _typed(source, study, patient, index_time, called, form.decimal)
        bench.execute(f"CREATE OR REPLACE TEMP TABLE finished AS {typed}")
        if until is not None:
            future = f"reason IS NULL AND index_time > {timestamp(until)}"
            bench.execute(f"UPDATE finished SET reason = {text(FUTURE)} WHERE {future}")
    except duckdb.Error as error:
        raise SourceFailed(f"{path.name} can't be read as a table ({type(error).__name__}); is it whole?") from None
    counts = dict(bench.execute("SELECT reason, count(*) FROM finished GROUP BY reason").fetchall())
    future = counts.pop(FUTURE, 0)
    counts["broken line"] = _rejected(bench) if path.suffix != ".parquet" else 0
    newest = bench.execute("SELECT max(index_time) FROM finished WHERE reason IS NULL").fetchall()[0][0]
    notes = [
        f"{one.column or one.name}: no such column in the table" for one in study.features if one.name not in called
    ]
    if form.separator != ",":
        notes.append(
            f"{path.name} is read with {form.separator!r} between columns and {form.decimal!r} before decimals"
        )
    if patient is None:
        notes.append("the table has no patients, so every row counts as one of its own")
    return ImportedTable(
        bench.sql("SELECT * EXCLUDE (reason) FROM finished WHERE reason IS NULL").to_arrow_table(),
        sum(counts.values()) + future,
        Counter({(TABLE, reason): count for reason, count in counts.items() if reason is not None and count}),
        future,
        newest.replace(tzinfo=UTC) if newest else None,
        notes,
    )


def _csv(path: Path, form: TableForm) -> str:
    missing = text_list(MISSING_WORDS)
    return (
        f"read_csv({text(path)}, all_varchar = true, header = true, delim = {text(form.separator)}, quote = '\"', "
        f"store_rejects = true, nullstr = [{missing}])"
    )


def _rejected(bench: duckdb.DuckDBPyConnection) -> int:
    return int(bench.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchall()[0][0])


def _column_of(one: Feature | Label, there: list[str]) -> str | None:
    """What the table calls it, blanks around it included."""
    called = column_in(one, {name.strip() for name in there})
    return next((name for name in there if name.strip() == called), None)


def _check(there: list[str], needed: list[str | None], path: Path, shown: list[str] | None = None) -> None:
    for column in needed:
        if column is not None and column not in there:
            raise SourceFailed(f"{path.name}: column {column} is missing; it has {', '.join((shown or there)[:20])}")


def _read_words(bench: duckdb.DuckDBPyConnection, source: str, study: Study, called: Mapping[str, str]) -> None:
    """Fill `said` with what the words of a feature mean that are neither numbers nor categories as they stand."""
    bench.execute('CREATE OR REPLACE TEMP TABLE said (feature VARCHAR, word VARCHAR, "value" VARCHAR)')
    for feature in study.features:
        if feature.read_as is None or feature.name not in called:
            continue
        column = f"CAST({name(called[feature.name])} AS VARCHAR)"
        words = bench.sql(f"SELECT DISTINCT {column} FROM {source} WHERE {column} IS NOT NULL").fetchall()
        read = reader(feature.read_as, feature.categories)
        meant = [None if (value := read(word)) is None else str(value) for (word,) in words]
        told = pa.table({"word": [word for (word,) in words], "value": pa.array(meant, pa.string())})
        bench.register("told", told)
        bench.execute(f'INSERT INTO said SELECT {text(feature.name)}, word, "value" FROM told')
        bench.unregister("told")


def _check_answers(bench: duckdb.DuckDBPyConnection, source: str, study: Study, column: str) -> None:
    """Words that are neither a plain yes nor a plain no must not become a no in silence."""
    label = study.label
    if label.positive == DEFAULT_POSITIVE:
        answer = f"lower({_word(column)})"
        strange = bench.execute(
            f"SELECT count(DISTINCT {answer}) FROM {source} WHERE {answer} NOT IN ({text_list(PLAIN_ANSWERS)})"
        ).fetchall()[0][0]
        if strange:
            raise CohortRejected(f"label {label.name} is yes or no", strange, "say in label.positive what means yes")


def _word(column: str) -> str:
    """A value as the word that it is: 1, 1.0 and true are the same, as for encoded tables."""
    there = f"trim(CAST({name(column)} AS VARCHAR))"
    return (
        f"CASE WHEN lower({there}) = 'true' THEN '1' WHEN lower({there}) = 'false' THEN '0' "
        f"WHEN finite({there}) = trunc(finite({there})) AND abs(finite({there})) < 1e15 "
        f"THEN CAST(CAST(finite({there}) AS BIGINT) AS VARCHAR) ELSE nullif({there}, '') END"
    )


def _means_yes(study: Study, column: str) -> str:
    outcome, positive = _word(column), study.label.positive
    if positive == DEFAULT_POSITIVE:
        return f"lower({outcome}) IN ({text_list(word.lower() for word in positive)})"
    plain = {"true": "1", "True": "1", "false": "0", "False": "0"}
    words = dict.fromkeys([*positive, *(_number_word(plain.get(one, one)) for one in positive)])
    return f"{outcome} IN ({text_list(words)})"


def _number_word(word: str) -> str:
    try:
        number = float(word)
    except ValueError:
        return word
    return str(int(number)) if number.is_integer() else word


def _typed(
    source: str, study: Study, patient: str | None, index_time: str | None, called: Mapping[str, str], decimal: str
) -> str:
    features = [feature for feature in study.features if feature.name in called]
    values = {one.name: _value(one, called[one.name], decimal) for one in features}
    columns = "".join(f"{value} AS {name(feature)}, " for feature, value in values.items())
    broken = " OR ".join(
        f"({_number_cell(called[one.name])} IS NOT NULL AND {values[one.name]} IS NULL)"
        for one in features
        if one.kind != "categorical"
    )
    who = f"CAST({name(patient)} AS VARCHAR)" if patient else "CAST(row_number() OVER () AS VARCHAR)"
    when = f"CAST({name(index_time)} AS VARCHAR)" if index_time else "NULL::VARCHAR"
    outcome = _word(called[study.label.name])
    yes, no = label_words(study.label.positive)
    is_yes = _means_yes(study, called[study.label.name])
    return f"""
        SELECT {who} AS patient, moment({when}) AS index_time, {columns}
            CASE WHEN {outcome} IS NOT NULL THEN CASE WHEN {is_yes} THEN {yes} ELSE {no} END END
                AS {name(study.label.name)},
            {outcome} IS NOT NULL AS ripe,
            CASE WHEN {who} IS NULL THEN 'no subject' WHEN broken({when}) THEN 'broken date'
                WHEN {"false" if index_time is None else f"{when} IS NULL"} THEN 'no date'
                WHEN {broken or "false"} THEN {text(NOT_A_NUMBER)} END AS reason
        FROM {source}"""


def _number_cell(called: str) -> str:
    """A cell of a column of numbers; None is none."""
    there = f"CAST({name(called)} AS VARCHAR)"
    return f"CASE WHEN lower(trim({there})) <> {text(NO_NUMBER)} THEN {there} END"


def _value(feature: Feature, called: str, decimal: str) -> str:
    column = f"CAST({name(called)} AS VARCHAR)"
    if feature.read_as is not None:
        meant = f'(SELECT s."value" FROM said s WHERE s.feature = {text(feature.name)} AND s.word = {column})'
        return meant if feature.categories else f"finite({meant})"
    if feature.kind == "categorical":
        known = text_list(feature.categories or ())
        word = _word(called)
        return f"CASE WHEN {column} NOT IN ({known}) AND {word} IN ({known}) THEN {word} ELSE {column} END"
    column = _number_cell(called)
    if decimal == ",":
        column = f"replace({column}, ',', '.')"
    if feature.kind == "binary":
        return f"CASE lower(trim({column})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 ELSE finite({column}) END"
    return f"finite({column})"
