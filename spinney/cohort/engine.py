"""Events become a table: a row per index event, a column per feature, a label, and whether the label is ripe.

Patients are worked on in buckets, so memory depends on the size of a bucket and not on that of the hospital. All sums
run over values in order, so that the same events give the same table to the last bit, in whatever order they come.
"""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.cohort.attrition import Attrition
from spinney.cohort.fates import count_attrition
from spinney.cohort.feature_columns import FeatureColumns, set_up_features
from spinney.cohort.looks import Look, alike, looks_of
from spinney.cohort.population import dead_by, find_rows, horizon_of, interval, is_chosen, is_no_part
from spinney.cohort.recipes import definition_of, has_answer, label_events
from spinney.cohort.selected_events import SelectedEvents
from spinney.connectors.duck import text
from spinney.errors import CohortRejected
from spinney.study.definition import PatientFeature
from spinney.study.study import Study

_ORDER = "(r.time, r.known, r.value)"
_WORD_ORDER = '(r.time, r.known, r."text")'
_DAY = "86400e6"
_SORTED = "list(r.value ORDER BY r.value)"  # sorted once for all that sum it up
STATISTICS = {
    "last": f"arg_max(r.value, {_ORDER})",
    "first": f"arg_min(r.value, {_ORDER})",
    "delta": f"arg_max(r.value, {_ORDER}) - arg_min(r.value, {_ORDER})",
    "mean": f"list_avg({_SORTED})",
    "std": f"list_stddev_samp({_SORTED})",
    "slope": f"regr_slope(r.value, epoch_us(r.time - i.prediction) / {_DAY} ORDER BY r.time, r.value)",
    "median": "median(r.value)",
    "p10": "quantile_cont(r.value, 0.1)",
    "p90": "quantile_cont(r.value, 0.9)",
    "min": "min(r.value)",
    "max": "max(r.value)",
    "count": "CAST(count(*) AS DOUBLE)",
    "exists": "1.0",
    "days-since": f"epoch_us(any_value(i.prediction) - max(r.time)) / {_DAY}",
}
WORD_STATISTICS = {"last": f'arg_max(r."text", {_WORD_ORDER})', "first": f'arg_min(r."text", {_WORD_ORDER})'}
COMPETING = "died before the outcome could happen"
NOT_ELIGIBLE = "without a value that makes eligible"
NOT_FIRST = "not the patient's first that is eligible"
LARGEST_TABLE = 256 << 20
CHUNK_READINGS = 5_000_000
CHUNK_CELLS = 4_000_000


@dataclass
class Built:
    """The table, with `ripe` as its last column, and what became of the index events."""

    table: pa.Table
    attrition: Attrition
    strangers: int
    """Index events of patients about whom the source tells nothing else."""


def build(
    bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study, largest: int = LARGEST_TABLE
) -> Built:
    """The table of a study, of at most `largest` bytes. The bench has its patients in `person`."""
    reasons = find_rows(bench, relevant, study)
    rows = bench.execute("SELECT count(*) FROM candidate WHERE step IS NULL").fetchall()[0][0]
    _check_size(rows, len(study.features), largest)
    looks = looks_of(study)
    set_up_features(bench, relevant, study, looks)
    bench.execute("CREATE OR REPLACE TEMP TABLE late (row BIGINT, step INT)")
    late = _late_reasons(study)
    steps = {reason: step for step, reason in enumerate(late, len(reasons))}
    tables = [_bucket_table(bench, relevant, study, looks, bucket, steps) for bucket in relevant.buckets]
    table = pa.concat_tables(tables)
    attrition = count_attrition(bench, relevant, study, [*reasons, *late])
    strangers = bench.execute("SELECT count(*) FROM candidate WHERE stranger").fetchall()[0][0]
    return Built(table, attrition, strangers)


def _late_reasons(study: Study) -> list[str]:
    """In order, why an index event becomes no row although no rule about its patient's record says so."""
    rules, label = definition_of(study).eligible, study.label.source
    reasons = {
        NOT_ELIGIBLE: bool(rules.values),
        NOT_FIRST: rules.only == "first-eligible",
        COMPETING: label is not None and label.outcome != "death" and label.competing == "exclude",
    }
    return [reason for reason, applies in reasons.items() if applies]


def _check_size(rows: int, features: int, largest: int) -> None:
    """Better one line now than to be killed for want of memory in the middle of the night."""
    if (size := rows * features * 8) > largest:
        raise CohortRejected(
            f"the table has at most {largest >> 20:,} MiB",
            advice=f"{rows:,} rows and {features:,} features make {size >> 20:,} MiB; ask for fewer, or raise "
            "largest_table_mib in site.yaml (every MiB costs a pull more than two)",
        )


def _bucket_table(
    bench: duckdb.DuckDBPyConnection,
    relevant: SelectedEvents,
    study: Study,
    looks: Sequence[Look],
    bucket: int,
    steps: Mapping[str, int],
) -> pa.Table:
    """The finished rows of a bucket: only what the study names, the patient, the index time, and whether it is ripe.

    Looks are worked on in chunks, so memory depends on the size of a chunk and not on how wide the study is.
    """
    bench.execute(
        f"CREATE OR REPLACE TEMP TABLE row AS SELECT * FROM candidate WHERE bucket = {bucket} AND step IS NULL"
    )
    bench.execute(f"CREATE OR REPLACE TEMP VIEW event AS SELECT * FROM {relevant.events(bucket)}")
    _find_outcomes(bench, study)
    rows = bench.sql(_frame_of(study)).to_arrow_table()
    figures = FeatureColumns(rows["row"].to_numpy(), study, looks)
    for chunk in _chunks(bench, looks, rows.num_rows):
        _read_series(bench, {looks[number].series for number in chunk})
        for some in alike(looks, chunk):
            figures.add(_statistics(bench, looks, some), some)
    columns = {"patient": rows["patient"], "index_time": rows["index_time"]}
    for place, feature in enumerate(study.features):
        source = feature.source
        columns[feature.name] = rows[source.patient] if isinstance(source, PatientFeature) else figures.column(place)
    columns |= {study.label.name: rows["label"], "ripe": rows["ripe"]}
    kept = figures.eligible
    _note_late(bench, rows, ~kept, steps.get(NOT_ELIGIBLE))
    if definition_of(study).eligible.only == "first-eligible":
        first = _firsts(rows, kept)
        _note_late(bench, rows, kept & ~first, steps.get(NOT_FIRST))
        kept = first
    untold = pc.and_(rows["ripe"], pc.is_null(rows["label"])).to_numpy()
    _note_late(bench, rows, kept & untold, steps.get(COMPETING))
    kept = kept & ~untold
    table = pa.table(columns)
    return table if kept.all() else table.filter(pa.array(kept))


def _firsts(rows: pa.Table, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of the rows that are kept those of each patient's first index event."""
    who = np.asarray(rows["patient"].combine_chunks().dictionary_encode().indices)
    nth = rows["nth"].to_numpy()
    first = np.full(who.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, who[kept], nth[kept])
    return np.asarray(kept & (nth == first[who]))


def _note_late(bench: duckdb.DuckDBPyConnection, rows: pa.Table, out: NDArray[np.bool_], step: int | None) -> None:
    """Note which rows are left out at a step that shows only once they have values."""
    if out.any():
        bench.register("late_rows", rows.select(["row"]).filter(pa.array(out)))
        bench.execute(f"INSERT INTO late SELECT row, {step} FROM late_rows")
        bench.unregister("late_rows")


def _chunks(bench: duckdb.DuckDBPyConnection, looks: Sequence[Look], rows: int) -> Iterator[list[int]]:
    """Numbers of looks, as many at a time as memory allows: by the readings that they share out, and their columns."""
    counts = dict(
        bench.execute(
            "WITH n AS (SELECT kind, code, count(*) AS n FROM event GROUP BY kind, code) "
            "SELECT f.series, CAST(sum(n) AS BIGINT) FROM n JOIN choice f ON f.kind = n.kind "
            "AND (f.code IS NULL OR f.code = n.code) GROUP BY f.series"
        ).fetchall()
    )
    widest = max(CHUNK_CELLS // max(rows, 1), 1)
    chunk, readings, columns = list[int](), 0, 0
    for number, look in enumerate(looks):
        more = counts.get(look.series, 0) if not chunk or looks[chunk[-1]].series != look.series else 0
        if chunk and (readings + more > CHUNK_READINGS or columns + len(look.places) > widest):
            yield chunk
            chunk, readings, columns, more = [], 0, 0, counts.get(look.series, 0)
        chunk.append(number)
        readings, columns = readings + more, columns + len(look.places)
    if chunk:
        yield chunk


def _read_series(bench: duckdb.DuckDBPyConnection, series: Collection[int]) -> None:
    """Fill `reading` with what the bucket's events mean to each of some series.

    An event is one reading of a series, however many of its codes and coded values the series names. Most events have
    one row (`alone`), and only the others are grouped.
    """
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE reading AS
        SELECT series, patient, "time", known, "value", coalesce(category, "text") AS "text"
        FROM ({_meant(series, "e.alone")})
        UNION ALL
        SELECT series, any_value(patient) AS patient, any_value("time") AS "time", any_value(known) AS known,
            min("value") AS "value", coalesce(arg_min(category, (place, category)), min("text")) AS "text"
        FROM ({_meant(series, "NOT e.alone")}) GROUP BY series, event
        """
    )


def _meant(series: Collection[int], which: str) -> str:
    """SQL for what rows of the events mean to the series that name them."""
    joined = " UNION ALL ".join(
        "SELECT e.*, f.series, f.takes, f.counting, f.bounds FROM event e "
        f"JOIN choice f ON f.kind = e.kind AND {by_code} WHERE {which} AND f.series IN ({_numbers(series)}) "
        "AND (len(f.classes) = 0 OR list_contains(f.classes, e.class)) "
        "AND (len(f.statuses) = 0 OR list_contains(f.statuses, e.status)) "
        f"AND (len(f.answers) = 0 OR {has_answer('f.answers')})"
        for by_code in ("f.code = e.code", "f.code IS NULL")
    )
    return f"""
        SELECT * FROM (
            SELECT m.series, event, patient, "time", counting, place,
                CASE takes WHEN 'days' THEN end_known ELSE known END AS known,
                CASE takes WHEN 'number' THEN CASE WHEN bounds OR comparator IS NULL THEN "value" * factor + shift END
                    WHEN 'days' THEN lasted END AS "value",
                CASE takes WHEN 'text' THEN "text" END AS "text", category
            FROM ({joined}) m LEFT JOIN converted c ON c.series = m.series AND c.unit = coalesce(m.unit, '')
            LEFT JOIN meaning s ON s.series = m.series AND s.word = m.text
        ) WHERE counting OR "value" IS NOT NULL OR "text" IS NOT NULL"""


def _statistics(bench: duckdb.DuckDBPyConnection, looks: Sequence[Look], some: Sequence[int]) -> pa.Table:
    """A line per row and look that sees something, with the statistics that these looks want, all in one pass."""
    first = looks[some[0]]
    words = WORD_STATISTICS if first.is_word else STATISTICS
    figures = ", ".join(f'{words[statistic]} AS "{statistic}"' for statistic in first.statistics)
    return bench.sql(
        f"""
        SELECT i.row, s.look, {figures}
        FROM row i JOIN reading r ON r.patient = i.patient AND r.time <= i.prediction AND r.known <= i.prediction
        JOIN span s ON s.series = r.series
        WHERE (s.back IS NULL OR r.time >= i.prediction - to_seconds(s.back)) AND s.look IN ({_numbers(some)})
        GROUP BY i.row, s.look
        """
    ).to_arrow_table()


def _find_outcomes(bench: duckdb.DuckDBPyConnection, study: Study) -> None:
    """Fill `yes` with the rows whose outcome happens within the horizon after prediction time.

    `gone` are those who die within it: if nothing else happened before, the outcome could not.
    """
    label = study.label.source
    end = f"i.prediction + {interval(horizon_of(study))}"
    dead = f"SELECT row FROM row i WHERE {dead_by(end)}"
    bench.execute(f"CREATE OR REPLACE TEMP TABLE gone AS {dead}")
    if label is None or label.outcome == "death":
        rows = dead
    else:
        chosen = is_chosen(label_events(label, definition_of(study)))
        another = is_no_part(study) if label.outcome == "index-event" else "true"
        rows = (
            f"SELECT DISTINCT i.row FROM row i JOIN (SELECT * FROM event e WHERE {chosen}) e ON e.patient = i.patient "
            f"AND e.time > i.prediction AND e.time <= {end} AND {another}"
        )
    bench.execute(f"CREATE OR REPLACE TEMP TABLE yes AS {rows}")


def _frame_of(study: Study) -> str:
    """SQL for what a row has beside its figures."""
    yes, no = label_words(study.label.positive)
    label = study.label.source
    unknown = "row IN (SELECT row FROM gone)" if label is not None and label.competing == "exclude" else "false"
    return f"""
        SELECT row, patient, nth, index_time, CAST(age AS DOUBLE) AS age, sex,
            CASE WHEN ripe THEN
                CASE WHEN row IN (SELECT row FROM yes) THEN {yes} WHEN {unknown} THEN NULL ELSE {no} END END AS label,
            ripe
        FROM row ORDER BY row"""


def label_words(positive: Collection[str]) -> tuple[str, str]:
    """How yes and no are written, so that the study's own words for yes mean yes."""
    if "1" in positive and "0" not in positive:
        return "1", "0"
    yes = min(positive)
    return text(yes), text("no" if "no" not in positive else f"not {yes}")


def _numbers(places: Collection[int]) -> str:
    return ", ".join(map(str, places))
