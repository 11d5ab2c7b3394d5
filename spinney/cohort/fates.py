"""What became of every index event: the first rule that it breaks, or a row, whose outcome is known or still open."""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spinney.cohort.attrition import Attrition, Loss
from spinney.cohort.recipes import definition_of
from spinney.cohort.selected_events import SelectedEvents
from spinney.connectors.duck import text
from spinney.study.study import Study

NO_INDEX_EVENT = "no index event of the study"
OPEN = "the outcome is still open"


def count_attrition(
    bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study, reasons: Sequence[str]
) -> Attrition:
    """Count what became of the index events in `candidate` and `late`, whose steps are the places of the reasons."""
    still_open, kept = len(reasons), len(reasons) + 1
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE fate AS
        SELECT c.patient, coalesce(l.step, c.step, CASE WHEN c.ripe THEN {kept} ELSE {still_open} END) AS step
        FROM candidate c LEFT JOIN late l ON l.row = c.row
        """
    )
    found = bench.execute("SELECT step, count(*), count(DISTINCT patient) FROM fate GROUP BY step").fetchall()
    events = {step: (rows, people) for step, rows, people in found}
    last = dict(
        bench.execute(
            "SELECT step, count(*) FROM (SELECT max(step) AS step FROM fate GROUP BY patient) GROUP BY step"
        ).fetchall()
    )
    losses = [
        Loss(reason, events.get(step, (0, 0))[0], last.get(step, 0), events.get(step, (0, 0))[1])
        for step, reason in enumerate((*reasons, OPEN))
    ]
    without = _never_chosen(bench, relevant, study, sum(last.values()))
    return Attrition(
        definition_of(study).index.kind, (without, *losses), events.get(kept, (0, 0))[0], last.get(kept, 0)
    )


def _never_chosen(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study, chosen: int) -> Loss:
    """Patients of the source without an index event, and events of its kind that are none.

    Where several events make one index event, or one makes several, their numbers can't be compared.
    """
    index = definition_of(study).index
    people = bench.execute(
        "SELECT count(DISTINCT patient) FROM (SELECT patient FROM person UNION ALL "
        f"SELECT DISTINCT patient FROM {relevant.events()})"
    ).fetchall()[0][0]
    if index.merge_within is not None or index.every is not None:
        return Loss(NO_INDEX_EVENT, None, people - chosen, 0)
    events, touched = bench.execute(
        f"SELECT count(DISTINCT e.event), count(DISTINCT e.patient) FROM {relevant.events()} e "
        f"ANTI JOIN opening o ON o.opening = e.event WHERE e.kind = {text(index.kind)}"
    ).fetchall()[0]
    return Loss(NO_INDEX_EVENT, events, people - chosen, touched)


def attrition_of_table(table: pa.Table) -> Attrition:
    """Of a finished table with `patient` and `ripe`."""
    ripe = table.filter(table["ripe"])["patient"]
    still_open = table.filter(pc.invert(table["ripe"]))["patient"]
    people = pc.count_distinct(ripe).as_py()
    lost = pc.count_distinct(table["patient"]).as_py() - people
    loss = Loss(OPEN, len(still_open), lost, pc.count_distinct(still_open).as_py())
    return Attrition("", (loss,), len(ripe), people)
