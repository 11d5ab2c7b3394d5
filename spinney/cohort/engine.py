"""Events become a table: a row per index event, a column per feature, a label, and whether the label is ripe.

Patients are worked on in buckets, so memory depends on the size of a bucket and not on that of the hospital. All sums
run over values in order, so that the same events give the same table to the last bit, in whatever order they come.
"""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.cohort.feature_columns import FeatureColumns, is_word, set_up_features
from spinney.cohort.population import dead_by, find_rows, horizon_of, interval, is_chosen, is_no_part
from spinney.cohort.recipes import definition_of, event_features, has_answer, label_events
from spinney.cohort.selected_events import SelectedEvents
from spinney.connectors.duck import text
from spinney.errors import CohortRejected
from spinney.study.definition import PatientFeature
from spinney.study.study import Study

_ORDER = "(r.time, r.known, r.value)"
_WORD_ORDER = '(r.time, r.known, r."text")'
_DAY = "86400e6"
STATISTICS = {
    "last": f"arg_max(r.value, {_ORDER})",
    "first": f"arg_min(r.value, {_ORDER})",
    "delta": f"arg_max(r.value, {_ORDER}) - arg_min(r.value, {_ORDER})",
    "mean": "avg(r.value ORDER BY r.value)",
    "std": "stddev_samp(r.value ORDER BY r.value)",
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
    index_events: int
    left_out: Counter[str]
    """Reason -> index events."""
    strangers: int
    """Index events of patients about whom the source tells nothing else."""


def build(
    bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study, largest: int = LARGEST_TABLE
) -> Built:
    """The table of a study, of at most `largest` bytes. The bench has its patients in `person`."""
    left_out = find_rows(bench, relevant, study)
    index_events = left_out.total()
    _check_size(left_out[""], len(study.features), largest)
    set_up_features(bench, relevant, study)
    bench.execute("CREATE OR REPLACE TEMP TABLE late (row BIGINT, reason VARCHAR)")
    table = pa.concat_tables([_bucket_table(bench, relevant, study, bucket) for bucket in relevant.buckets])
    del left_out[""]
    left_out.update(dict(bench.execute("SELECT reason, count(*) FROM late GROUP BY 1").fetchall()))
    strangers = bench.execute("SELECT count(*) FROM candidate WHERE stranger").fetchall()[0][0]
    return Built(table, index_events, +left_out, strangers)


def _check_size(rows: int, features: int, largest: int) -> None:
    """Better one line now than to be killed for want of memory in the middle of the night."""
    if (size := rows * features * 8) > largest:
        raise CohortRejected(
            f"the table has at most {largest >> 20:,} MiB",
            advice=f"{rows:,} rows and {features:,} features make {size >> 20:,} MiB; ask for fewer, or raise "
            "largest_table_mib in site.yaml (every MiB costs a pull more than two)",
        )


def _bucket_table(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study, bucket: int) -> pa.Table:
    """The finished rows of a bucket: only what the study names, the patient, the index time, and whether it is ripe.

    Features are worked on in chunks, so memory depends on the size of a chunk and not on how wide the study is.
    """
    bench.execute(
        f"CREATE OR REPLACE TEMP TABLE row AS SELECT * FROM candidate WHERE bucket = {bucket} AND left_out = ''"
    )
    bench.execute(f"CREATE OR REPLACE TEMP VIEW event AS SELECT * FROM {relevant.events(bucket)}")
    _find_outcomes(bench, study)
    rows = bench.sql(_frame_of(study)).to_arrow_table()
    figures = FeatureColumns(rows["row"].to_numpy(), study)
    for chunk in _chunks(bench, study, rows.num_rows):
        _read_chunk(bench, chunk)
        _compute_statistics(bench, study, chunk)
        figures.add(bench, chunk)
    columns = {"patient": rows["patient"], "index_time": rows["index_time"]}
    for place, feature in enumerate(study.features):
        source = feature.source
        columns[feature.name] = rows[source.patient] if isinstance(source, PatientFeature) else figures.column(place)
    columns |= {study.label.name: rows["label"], "ripe": rows["ripe"]}
    kept = figures.eligible
    _note_late(bench, rows, ~kept, NOT_ELIGIBLE)
    if definition_of(study).eligible.only == "first-eligible":
        first = _firsts(rows, kept)
        _note_late(bench, rows, kept & ~first, NOT_FIRST)
        kept = first
    untold = pc.and_(rows["ripe"], pc.is_null(rows["label"])).to_numpy()
    _note_late(bench, rows, kept & untold, COMPETING)
    kept = kept & ~untold
    return pa.table(columns).filter(pa.array(kept))


def _firsts(rows: pa.Table, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of the rows that are kept those of each patient's first index event."""
    who = np.asarray(rows["patient"].combine_chunks().dictionary_encode().indices)
    nth = rows["nth"].to_numpy()
    first = np.full(who.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, who[kept], nth[kept])
    return np.asarray(kept & (nth == first[who]))


def _note_late(bench: duckdb.DuckDBPyConnection, rows: pa.Table, out: NDArray[np.bool_], reason: str) -> None:
    """Note which rows are left out for a reason that shows only once they have values."""
    if out.any():
        bench.register("late_rows", rows.select(["row"]).filter(pa.array(out)))
        bench.execute(f"INSERT INTO late SELECT row, {text(reason)} FROM late_rows")
        bench.unregister("late_rows")


def _chunks(bench: duckdb.DuckDBPyConnection, study: Study, rows: int) -> list[list[int]]:
    """Places of event features, as many at a time as memory allows: by the readings that they share out."""
    counts = dict(
        bench.execute(
            "WITH n AS (SELECT kind, code, count(*) AS n FROM event GROUP BY kind, code) "
            "SELECT f.feature, CAST(sum(n) AS BIGINT) FROM n JOIN choice f ON f.kind = n.kind "
            "AND (f.code IS NULL OR f.code = n.code) GROUP BY f.feature"
        ).fetchall()
    )
    widest = max(CHUNK_CELLS // max(rows, 1), 1)
    chunks: list[list[int]] = [[]]
    readings = 0
    for place in event_features(study):
        readings += counts.get(place, 0)
        if chunks[-1] and (readings > CHUNK_READINGS or len(chunks[-1]) >= widest):
            chunks.append([])
            readings = counts.get(place, 0)
        chunks[-1].append(place)
    return [chunk for chunk in chunks if chunk]


def _read_chunk(bench: duckdb.DuckDBPyConnection, chunk: list[int]) -> None:
    """Fill `reading` with what the bucket's events mean to each feature of a chunk.

    An event is one reading of a feature, however many of its codes and coded values the feature names.
    """
    joined = " UNION ALL ".join(
        "SELECT e.*, f.feature, f.takes, f.counting, f.bounds FROM event e "
        f"JOIN choice f ON f.kind = e.kind AND {by_code} WHERE f.feature IN ({_numbers(chunk)}) "
        "AND (len(f.classes) = 0 OR list_contains(f.classes, e.class)) "
        "AND (len(f.statuses) = 0 OR list_contains(f.statuses, e.status)) "
        f"AND (len(f.answers) = 0 OR {has_answer('f.answers')})"
        for by_code in ("f.code = e.code", "f.code IS NULL")
    )
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE reading AS
        WITH met AS ({joined}), meant AS (
            SELECT m.feature, event, patient, "time", counting, place,
                CASE takes WHEN 'days' THEN end_known ELSE known END AS known,
                CASE takes WHEN 'number' THEN CASE WHEN bounds OR comparator IS NULL THEN "value" * factor + shift END
                    WHEN 'days' THEN lasted END AS "value",
                CASE takes WHEN 'text' THEN "text" END AS "text", category
            FROM met m LEFT JOIN converted c ON c.feature = m.feature AND c.unit = coalesce(m.unit, '')
            LEFT JOIN meaning s ON s.feature = m.feature AND s.word = m.text
        )
        SELECT feature, any_value(patient) AS patient, any_value("time") AS "time", any_value(known) AS known,
            min("value") AS "value", coalesce(arg_min(category, (place, category)), min("text")) AS "text"
        FROM meant WHERE counting OR "value" IS NOT NULL OR "text" IS NOT NULL GROUP BY feature, event
        """
    )


_SEEN = """
    FROM row i JOIN reading r ON r.patient = i.patient AND r.time <= i.prediction AND r.known <= i.prediction
    JOIN span s ON s.feature = r.feature
    WHERE (s.back IS NULL OR r.time >= i.prediction - to_seconds(s.back))"""


def _compute_statistics(bench: duckdb.DuckDBPyConnection, study: Study, chunk: list[int]) -> None:
    """Fill `figure` with one number or word per row and feature, and `seen` with rows that have what makes eligible."""
    bench.execute('CREATE OR REPLACE TEMP TABLE figure (row BIGINT, feature INT, "value" DOUBLE, "text" VARCHAR)')
    together: dict[tuple[str, bool], list[int]] = {}
    features = event_features(study)
    for place in chunk:
        together.setdefault((features[place].statistic, is_word(features[place])), []).append(place)
    for (statistic, word), places in together.items():
        figure = f"NULL, {WORD_STATISTICS[statistic]}" if word else f"{STATISTICS[statistic]}, NULL"
        bench.execute(
            f"INSERT INTO figure SELECT i.row, r.feature, {figure} {_SEEN} AND r.feature IN ({_numbers(places)}) "
            "GROUP BY i.row, r.feature"
        )
    needed = definition_of(study).eligible.values
    makes_eligible = _numbers([place for place in chunk if study.features[place].name in needed]) or "NULL"
    bench.execute(
        f"CREATE OR REPLACE TEMP TABLE seen AS SELECT i.row, count(DISTINCT r.feature) AS features {_SEEN} "
        f"AND r.feature IN ({makes_eligible}) GROUP BY i.row"
    )


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


def _numbers(places: list[int]) -> str:
    return ", ".join(map(str, places))
