"""Who is in the cohort: the index events of a source, and of each why it can't be a row, or no reason.

The rules are applied in the order of `_reasons`, and an index event is counted under the first that it breaks. A rule
sees what was known at prediction time and nothing else, so that whoever applies a model can apply the rule.
"""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import duckdb

from spinney.cohort.recipes import HistoryRule, definition_of, has_answer, history_rules
from spinney.cohort.selected_events import SelectedEvents
from spinney.connectors.duck import text, text_list, timestamp
from spinney.errors import CohortRejected
from spinney.study.codes import Pattern, pattern_of, written_out
from spinney.study.definition import Events, IndexEvent, Stay, length
from spinney.study.study import Study


def find_rows(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study) -> list[str]:
    """Fill `candidate` with the index events; `step` is the place of the reason why one can't be a row, or NULL.

    Returns the reasons. Two rules may have one name, so places tell them apart.
    """
    cohort = definition_of(study)
    _find_openings(bench, relevant, study)
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE entry AS
        SELECT o.*, o.index_time + {interval(cohort.offset)} AS prediction, p.* EXCLUDE (patient),
            p.patient IS NULL AS stranger, age_on(p.birth, local_day(o.index_time)) AS age,
            row_number() OVER () AS row
        FROM opening o LEFT JOIN person p ON p.patient = o.patient
        """
    )
    _find_history(bench, relevant, study)
    _find_inside_groups(bench, study)
    reasons = [*_reasons(relevant, study)]
    cases = " ".join(f"WHEN {breaks} THEN {step}" for step, (_, breaks) in enumerate(reasons))
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE candidate AS
        SELECT *, prediction + {interval(horizon_of(study))} <= {timestamp(relevant.watermark)} AS ripe,
            CASE {cases} END AS step
        FROM entry
        """
    )
    if not bench.execute("SELECT count(*) FROM candidate").fetchall()[0][0]:
        raise CohortRejected(
            f"the source has index events ({cohort.index.kind})",
            0,
            "compare classes, statuses and codes with your data",
        )
    return [reason for reason, _ in reasons]


def _find_openings(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study) -> None:
    """Fill `opening` with the index events at their index times, and `part` with the events that each consists of.

    `sure` is from when on it had surely begun: a day has at its end. `nth` says the how manieth of its patient it is.
    """
    cohort = definition_of(study)
    index, now = cohort.index, timestamp(relevant.now)
    _find_inner(bench, relevant, index)
    bench.execute(f"CREATE OR REPLACE TEMP TABLE part AS {_parts(relevant, study)}")
    at = "ended" if index.at == "end" else "began"
    last = f"least(coalesce(ended, {now}), began + {interval(index.up_to)}, {now})"
    times = f"unnest(generate_series(began, {last}, {interval(index.every)}))" if index.every else at
    going_on = "(ended IS NULL OR index_time = began OR index_time < ended)" if index.every else "true"
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE opening AS
        WITH index_event AS (
            SELECT opening, any_value(patient) AS patient, any_value(bucket) AS bucket, min(began) AS began,
                CASE WHEN count(ended) = count(*) THEN max(ended) END AS ended, min(sure) AS sure,
                min(inner_since) AS inner_since, max(struct_pack(ended := ended, so := left_so)).so AS left_so
            FROM part GROUP BY opening
        ), timed AS (SELECT *, {times} AS index_time FROM index_event WHERE {at} <= {now} AND left_so)
        SELECT *, dense_rank() OVER (
            PARTITION BY patient ORDER BY {at}, began, ended DESC NULLS FIRST, opening) AS nth
        FROM timed WHERE {going_on} AND inner_since <= index_time + {interval(cohort.offset)}
        """
    )


def _parts(relevant: SelectedEvents, study: Study) -> str:
    """SQL for the events that are chosen, and the index event (`opening`) to which each belongs."""
    index = definition_of(study).index
    chosen = f"""
        SELECT e.event, any_value(patient) AS patient, any_value(bucket) AS bucket, any_value("time") AS began,
            any_value("until") AS ended,
            any_value(CASE WHEN recorded IS NULL THEN greatest("time", known) ELSE "time" END) AS sure,
            {"any_value(n.since)" if isinstance(index.part_of, Stay) else "TIMESTAMP '-infinity'"} AS inner_since,
            {_left_so(study)} AS left_so
        FROM {relevant.events()} e {_INNER if isinstance(index.part_of, Stay) else ""}
        LEFT JOIN code_map m ON m.theirs = e.discharge
        WHERE {is_chosen(index)} {"AND e.parent IS NULL" if index.part_of == "nothing" else ""} GROUP BY e.event"""
    if index.merge_within is None:
        return f"SELECT *, event AS opening FROM ({chosen})"
    return f"""
        WITH chosen AS ({chosen}), spaced AS (
            SELECT *, began - max(greatest(began, ended)) OVER (
                PARTITION BY patient ORDER BY began, event ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS gap
            FROM chosen
        ), numbered AS (
            SELECT * EXCLUDE (gap), sum(CASE WHEN gap < {interval(index.merge_within)} THEN 0 ELSE 1 END) OVER (
                PARTITION BY patient ORDER BY began, event ROWS UNBOUNDED PRECEDING) AS episode
            FROM spaced
        )
        SELECT * EXCLUDE (episode),
            first_value(event) OVER (PARTITION BY patient, episode ORDER BY began, event) AS opening
        FROM numbered"""


_INNER = "JOIN inside n ON n.event = e.event"


def _find_inner(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, index: IndexEvent) -> None:
    """Fill `inside` with the encounters that are part of the study's stays, and since when that is known."""
    if not isinstance(index.part_of, Stay):
        return
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE inside AS
        WITH RECURSIVE link AS (
            SELECT DISTINCT event, parent FROM {relevant.events()} WHERE kind = 'Encounter' AND parent IS NOT NULL
        ), above AS (
            SELECT event, parent FROM link
            UNION SELECT a.event, l.parent FROM above a JOIN link l ON l.event = a.parent
        ), whole AS (
            SELECT event, any_value(greatest("time", known)) AS since FROM {relevant.events()} e
            WHERE {is_chosen(index.part_of)} GROUP BY event
        )
        SELECT a.event, min(w.since) AS since FROM above a JOIN whole w ON w.event = a.parent GROUP BY a.event
        """
    )


def _left_so(study: Study) -> str:
    """SQL aggregate over the rows of an encounter: whether it ended as the study says."""
    codes = written_out(definition_of(study).index.discharged_to, study.pinned)
    ways = " OR ".join(means("coalesce(m.ours, e.discharge)", pattern_of(code)) for code in codes)
    return f"coalesce(bool_or({ways}), false)" if codes else "true"


def means(column: str, pattern: Pattern) -> str:
    """SQL condition: whether a column with a code is what is meant."""
    if pattern.system is None:
        column, word = f"substr({column}, strpos({column}, '|') + 1)", pattern.word
    else:
        word = f"{pattern.system}|{pattern.word}"
    return f"starts_with({column}, {text(word)})" if pattern.begins else f"{column} = {text(word)}"


def is_no_part(study: Study) -> str:
    """SQL condition on an event `e` and a row `i`: it would open a row of its own, and is no part of this one."""
    index = definition_of(study).index
    conditions = ["true"]
    if index.merge_within is not None:
        conditions.append(f"NOT EXISTS ({_ITSELF})")
    if isinstance(index.part_of, Stay):
        conditions.append("e.event IN (SELECT event FROM inside)")
    elif index.part_of == "nothing":
        conditions.append("e.parent IS NULL")
    return " AND ".join(conditions)


def _find_history(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study) -> None:
    """Fill `past` with the rules, by number, for which a row's patient has an event.

    Such an event began before index time and was known at prediction time. The index event itself is no history, but
    shows that its patient was in sight.
    """
    cohort = definition_of(study)
    bench.execute("CREATE OR REPLACE TEMP TABLE past (rule INT, row BIGINT)")
    for number, rule in enumerate(history_rules(cohort)):
        history = rule.newest is None and rule.events.kind == cohort.index.kind
        itself = f"AND NOT EXISTS ({_ITSELF})" if history else ""
        bench.execute(
            f"""
            INSERT INTO past SELECT DISTINCT {number}, i.row
            FROM (SELECT * FROM {relevant.events()} e WHERE {is_chosen(rule.events)}) e
            JOIN entry i ON e.patient = i.patient AND {_in_span(rule)} AND e.known <= i.prediction {itself}
            """
        )


def _find_inside_groups(bench: duckdb.DuckDBPyConnection, study: Study) -> None:
    """Fill `grouped` with the rules, by number, by whose groups a row's patient is held at prediction time."""
    bench.execute("CREATE OR REPLACE TEMP TABLE grouped (rule INT, row BIGINT)")
    if definition_of(study).eligible.member_of:
        bench.execute(
            "INSERT INTO grouped SELECT DISTINCT m.rule, i.row FROM entry i JOIN membership m ON m.patient = i.patient "
            "WHERE coalesce(m.since <= i.prediction, true) AND coalesce(i.prediction <= m.till, true)"
        )


_ITSELF = "SELECT 1 FROM part p WHERE p.opening = i.opening AND p.event = e.event"


def _in_span(rule: HistoryRule) -> str:
    newest = "e.time < i.index_time" if rule.newest is None else f"e.time <= i.index_time - {_seconds(rule.newest)}"
    newest += ' AND coalesce(e."until" >= i.index_time, true)' if rule.lasting else ""
    return newest + (f" AND e.time >= i.index_time - {_seconds(rule.oldest)}" if rule.oldest is not None else "")


def _reasons(relevant: SelectedEvents, study: Study) -> Iterator[tuple[str, str]]:
    """In order, why an index event becomes no row, and the SQL condition for it."""
    cohort = definition_of(study)
    rules = cohort.eligible
    if cohort.since:
        yield "before the first day of the study", f"local_day(index_time) < DATE {text(cohort.since)}"
    if rules.only == "first":
        yield "not the patient's first", "nth > 1"
    if rules.age:
        low, high = rules.age
        yield "age unknown", "age IS NULL"
        yield "age", f"age NOT BETWEEN {low} AND {high}"
    if rules.minimum_stay:
        until = "least(prediction, coalesce(ended, prediction))"
        yield f"shorter than {rules.minimum_stay}", f"{until} - sure < {interval(rules.minimum_stay)}"
    for number, group in enumerate(rules.member_of):
        yield f"not in {group.name}", f"row NOT IN (SELECT row FROM grouped WHERE rule = {number})"
    for number, rule in enumerate(history_rules(cohort)):
        word = "NOT IN" if rule.needed else "IN"
        yield rule.reason, f"row {word} (SELECT row FROM past WHERE rule = {number})"
    if study.label.source and study.label.source.outcome == "death":
        yield "died, but not known when", "died_undated"
    yield "died before prediction time", _dead_at(study)
    yield "prediction time not reached", f"prediction > {timestamp(relevant.watermark)}"


def dead_by(moment: str, at: str = "end") -> str:
    """SQL condition: dead by then. A death that is known to the day is compared by day: who dies on the day on which
    something began was alive then, and dead when it ended."""
    day = f"local_day(died) {'<' if at == 'start' else '<='} local_day({moment})"
    return f"CASE WHEN died IS NULL THEN false WHEN died_that_day THEN {day} ELSE died <= {moment} END"


def _dead_at(study: Study) -> str:
    """SQL condition: dead by prediction time, and so no row, unless a death within the stay is a no of the study."""
    label, dead = study.label.source, dead_by("prediction", definition_of(study).index.at)
    if label is None or label.competing == "exclude":
        return dead
    return f"{dead} AND ({dead_by('began', 'start')} OR NOT ripe)"


def horizon_of(study: Study) -> str:
    """How long after prediction time the outcome may happen."""
    return study.label.source.horizon if study.label.source else "0h"


def is_chosen(events: Events) -> str:
    """SQL condition on an event `e`: whether it is one of those that a study names."""
    conditions = [f"e.kind = {text(events.kind)}"]
    for column, any_of in (("code", events.codes), ("class", events.classes), ("status", events.statuses)):
        if any_of:
            conditions.append(f"e.{column} IN ({text_list(any_of)})")
    if events.answers:
        conditions.append(has_answer(f"[{text_list(events.answers)}]"))
    return " AND ".join(conditions)


def interval(duration: str) -> str:
    """SQL for a duration."""
    return _seconds(length(duration))


def _seconds(span: timedelta) -> str:
    return f"INTERVAL {text(f'{int(span.total_seconds())} seconds')}"
