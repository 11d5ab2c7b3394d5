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
import pyarrow as pa

from connectors.bench import instant, name, text, texts
from connectors.recipes import definition_of, event_features, label_events
from connectors.relevant import Relevant
from spinney.definition import COUNTING, EventFeature, Events, PatientFeature, length
from spinney.errors import CohortRejected
from spinney.settings import Feature
from spinney.study import Study

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
NOT_ELIGIBLE = "without a value that makes eligible"


@dataclass
class Built:
    """The table, with `ripe` as its last column, and what became of the index events."""

    table: pa.Table
    index_events: int
    left_out: Counter[str]
    """Reason -> index events."""
    strangers: int
    """Index events of patients about whom the source tells nothing else."""


def build(bench: duckdb.DuckDBPyConnection, relevant: Relevant, study: Study) -> Built:
    """The table of a study. The bench has its patients in `person`."""
    left_out = _find_rows(bench, relevant, study)
    index_events = left_out.total()
    _set_up_features(bench, relevant, study)
    for number, bucket in enumerate(relevant.buckets):
        _read_bucket(bench, relevant, bucket)
        _compute_statistics(bench, study)
        _find_outcomes(bench, study)
        into = "INSERT INTO cohort" if number else "CREATE OR REPLACE TEMP TABLE cohort AS"
        bench.execute(f"{into} {_finished(study)}")
    table: pa.Table = bench.sql("SELECT * FROM cohort ORDER BY patient, index_time").to_arrow_table()
    left_out[NOT_ELIGIBLE] = left_out.pop("", 0) - table.num_rows
    strangers = bench.execute("SELECT count(*) FROM candidate WHERE stranger").fetchall()[0][0]
    return Built(table, index_events, +left_out, strangers)


def _find_rows(bench: duckdb.DuckDBPyConnection, relevant: Relevant, study: Study) -> Counter[str]:
    """Fill `candidate` with the index events, each with the reason why it can't be a row, or with no reason."""
    cohort = definition_of(study)
    at = name("until" if cohort.index.at == "end" else "time")
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE candidate AS
        WITH index_event AS (
            SELECT DISTINCT patient, bucket, {at} AS index_time FROM {relevant.events()} e
            WHERE {_chosen(cohort.index)} AND {at} <= {instant(relevant.now)}
        ), row AS (
            SELECT i.*, i.index_time + {_interval(cohort.offset)} AS prediction, p.* EXCLUDE (patient),
                p.patient IS NULL AS stranger,
                date_sub('year', p.birth, CAST(i.index_time AS DATE)) AS age
            FROM index_event i LEFT JOIN person p ON p.patient = i.patient
        )
        SELECT *, row_number() OVER () AS row,
            prediction + {_interval(_horizon(study))} <= {instant(relevant.watermark)} AS ripe,
            CASE {_exclusions(study)}
                WHEN died <= prediction THEN 'died before prediction time'
                WHEN prediction > {instant(relevant.watermark)} THEN 'prediction time not reached'
                ELSE '' END AS left_out
        FROM row
        """
    )
    counts = bench.execute("SELECT left_out, count(*) FROM candidate GROUP BY 1").fetchall()
    if not counts:
        raise CohortRejected(
            f"the source has index events ({cohort.index.kind})",
            0,
            "compare classes, statuses and codes with your data",
        )
    return Counter(dict(counts))


def _exclusions(study: Study) -> str:
    cohort = definition_of(study)
    cases = []
    if cohort.since:
        cases.append(f"WHEN index_time < DATE {text(cohort.since)} THEN 'before the first day of the study'")
    if cohort.eligible.age:
        low, high = cohort.eligible.age
        cases.append(f"WHEN age IS NULL THEN 'age unknown' WHEN age NOT BETWEEN {low} AND {high} THEN 'age'")
    if study.label.source and study.label.source.outcome == "death":
        cases.append("WHEN died_undated THEN 'died, but not known when'")
    return " ".join(cases)


def _set_up_features(bench: duckdb.DuckDBPyConnection, relevant: Relevant, study: Study) -> None:
    """Small tables that say which event belongs to which feature, and how its value is made."""
    bench.execute(
        "CREATE OR REPLACE TEMP TABLE choice (feature INT, kind VARCHAR, code VARCHAR, classes VARCHAR[], "
        "statuses VARCHAR[], takes VARCHAR, counting BOOLEAN);"
        "CREATE OR REPLACE TEMP TABLE span (feature INT, back INTERVAL);"
        "CREATE OR REPLACE TEMP TABLE meaning (feature INT, word VARCHAR, category VARCHAR);"
        "CREATE OR REPLACE TEMP TABLE converted (feature INT, unit VARCHAR, factor DOUBLE, shift DOUBLE)"
    )
    for place, source in event_features(study).items():
        how = [list(source.classes), list(source.statuses), source.value, source.statistic in COUNTING]
        codes = dict.fromkeys(source.codes) or [None]
        bench.executemany(
            "INSERT INTO choice VALUES (?, ?, ?, ?, ?, ?, ?)", [[place, source.kind, c, *how] for c in codes]
        )
        back = "NULL" if source.window is None else _interval(source.window)
        bench.execute(f"INSERT INTO span VALUES ({place}, {back})")
        for word, category in source.meaning.items():
            bench.execute("INSERT INTO meaning VALUES (?, ?, ?)", [place, word, category])
    for place, unit, by in dict.fromkeys(relevant.conversions):
        bench.execute("INSERT INTO converted VALUES (?, ?, ?, ?)", [place, unit or "", by.factor, by.offset])


def _read_bucket(bench: duckdb.DuckDBPyConnection, relevant: Relevant, bucket: int) -> None:
    """Fill `row` and `event` with one bucket, and `reading` with what its events mean to each feature.

    Rows that are equal in everything but the code are one event: a resource with two codings, or one delivered twice.
    """
    bench.execute(
        f"CREATE OR REPLACE TEMP TABLE row AS SELECT * FROM candidate WHERE bucket = {bucket} AND left_out = ''"
    )
    bench.execute(f"CREATE OR REPLACE TEMP VIEW event AS SELECT * FROM {relevant.events(bucket)}")
    joined = " UNION ALL ".join(
        f"SELECT e.*, f.feature, f.takes, f.counting FROM event e JOIN choice f ON f.kind = e.kind AND {by_code} "
        "WHERE (len(f.classes) = 0 OR list_contains(f.classes, e.class)) "
        "AND (len(f.statuses) = 0 OR list_contains(f.statuses, e.status))"
        for by_code in ("f.code = e.code", "f.code IS NULL")
    )
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE reading AS
        WITH met AS ({joined}), meant AS (
            SELECT m.feature, patient, "time", "until", counting,
                CASE takes WHEN 'days' THEN end_known ELSE known END AS known,
                CASE takes WHEN 'number' THEN "value" * factor + shift
                    WHEN 'days' THEN epoch_us("until" - "time") / {_DAY} END AS "value",
                CASE takes WHEN 'text' THEN coalesce(category, "text") END AS "text"
            FROM met m LEFT JOIN converted c ON c.feature = m.feature AND c.unit = coalesce(m.unit, '')
            LEFT JOIN meaning s ON s.feature = m.feature AND s.word = m.text
        )
        SELECT DISTINCT feature, patient, "time", "until", known, "value", "text"
        FROM meant WHERE counting OR "value" IS NOT NULL OR "text" IS NOT NULL
        """
    )


_SEEN = """
    FROM row i JOIN reading r ON r.patient = i.patient AND r.time <= i.prediction AND r.known <= i.prediction
    JOIN span s ON s.feature = r.feature
    WHERE (s.back IS NULL OR r.time >= i.prediction - s.back)"""


def _compute_statistics(bench: duckdb.DuckDBPyConnection, study: Study) -> None:
    """Fill `figure` with one number or word per row and feature, and `eligible` with the rows that may stay."""
    bench.execute('CREATE OR REPLACE TEMP TABLE figure (row BIGINT, feature INT, "value" DOUBLE, "text" VARCHAR)')
    together: dict[tuple[str, bool], list[int]] = {}
    for place, source in event_features(study).items():
        together.setdefault((source.statistic, _is_word(source)), []).append(place)
    for (statistic, is_word), places in together.items():
        figure = f"NULL, {WORD_STATISTICS[statistic]}" if is_word else f"{STATISTICS[statistic]}, NULL"
        bench.execute(
            f"INSERT INTO figure SELECT i.row, r.feature, {figure} {_SEEN} AND r.feature IN ({_numbers(places)}) "
            "GROUP BY i.row, r.feature"
        )
    needed = definition_of(study).eligible.values
    places = [place for place, feature in enumerate(study.features) if feature.name in needed]
    having = f"SELECT i.row {_SEEN} AND r.feature IN ({_numbers(places)}) GROUP BY i.row"
    rows = f"{having} HAVING count(DISTINCT r.feature) = {len(places)}" if places else "SELECT row FROM row"
    bench.execute(f"CREATE OR REPLACE TEMP TABLE eligible AS {rows}")


def _find_outcomes(bench: duckdb.DuckDBPyConnection, study: Study) -> None:
    """Fill `yes` with the rows whose outcome happens within the horizon after prediction time."""
    label = study.label.source
    end = f"i.prediction + {_interval(_horizon(study))}"
    if label is None or label.outcome == "death":
        rows = f"SELECT i.row FROM row i WHERE i.died > i.prediction AND i.died <= {end}"
    else:
        chosen = _chosen(label_events(label, definition_of(study)))
        rows = (
            f"SELECT DISTINCT i.row FROM row i JOIN (SELECT * FROM event e WHERE {chosen}) e ON e.patient = i.patient "
            f"AND e.time > i.prediction AND e.time <= {end}"
        )
    bench.execute(f"CREATE OR REPLACE TEMP TABLE yes AS {rows}")


def _finished(study: Study) -> str:
    """SQL for the finished rows of a bucket: only what the study names, the patient and the index time."""
    wide = ", ".join(
        f"max({'text' if _is_word(source) else name('value')}) FILTER (feature = {place}) AS f{place}"
        for place, source in event_features(study).items()
    )
    columns = ", ".join(f"{_column(place, one)} AS {name(one.name)}" for place, one in enumerate(study.features))
    yes, no = label_words(study.label.positive)
    label = f"CASE WHEN i.ripe THEN CASE WHEN i.row IN (SELECT row FROM yes) THEN {yes} ELSE {no} END END"
    return f"""
        SELECT i.patient, i.index_time, {columns}, {label} AS {name(study.label.name)}, i.ripe
        FROM row i LEFT JOIN (SELECT row{", " if wide else ""}{wide} FROM figure GROUP BY row) w USING (row)
        WHERE i.row IN (SELECT row FROM eligible)"""


def _column(place: int, feature: Feature) -> str:
    source = feature.source
    if isinstance(source, PatientFeature):
        return "CAST(i.age AS DOUBLE)" if source.patient == "age" else "i.sex"
    if isinstance(source, EventFeature) and source.statistic in ("count", "exists"):
        return f"coalesce(f{place}, 0.0)"
    return f"f{place}"


def label_words(positive: Collection[str]) -> tuple[str, str]:
    """How yes and no are written, so that the study's own words for yes mean yes."""
    if "1" in positive and "0" not in positive:
        return "1", "0"
    yes = min(positive)
    return text(yes), text("no" if "no" not in positive else f"not {yes}")


def _horizon(study: Study) -> str:
    return study.label.source.horizon if study.label.source else "0h"


def _is_word(source: EventFeature) -> bool:
    return source.value == "text" and source.statistic not in COUNTING


def _chosen(events: Events) -> str:
    """SQL condition on an event `e`."""
    conditions = [f"e.kind = {text(events.kind)}"]
    for column, any_of in (("code", events.codes), ("class", events.classes), ("status", events.statuses)):
        if any_of:
            conditions.append(f"e.{column} IN ({texts(any_of)})")
    return " AND ".join(conditions)


def _interval(duration: str) -> str:
    return f"INTERVAL {text(f'{int(length(duration).total_seconds())} seconds')}"


def _numbers(places: list[int]) -> str:
    return ", ".join(map(str, places))
