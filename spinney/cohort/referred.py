"""What events refer to: the Medication that says which drug it was, and the Encounter that says when a diagnosis was.

Both are asked of the source and staged before the events that need them.
"""
# ruff: noqa: S608 (SQL made of our own words; file names go through bench.text)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from spinney.connectors.duck import text
from spinney.connectors.fhir.shape_sql import contained_codings
from spinney.connectors.fhir.shapes import SHAPES
from spinney.connectors.sources import Wanted

MEDICATION = "Medication"


def with_referred(wanted: Sequence[Wanted]) -> list[Wanted]:
    """What is wanted, and what is needed to understand it: all Medications, and all Encounters that may date."""
    kinds = {one.kind: SHAPES[one.kind] for one in wanted if one.kind in SHAPES}
    every = list(wanted)
    if any(shape.dated_by_encounter for shape in kinds.values()):
        every = [replace(one, codes=(), since=None) if one.kind == "Encounter" else one for one in wanted]
        if "Encounter" not in kinds:
            every.append(Wanted("Encounter", helps=True))
    if any(shape.medication for shape in kinds.values()):
        every.append(Wanted(MEDICATION, helps=True))
    return every


def in_order(kinds: Iterable[str]) -> list[str]:
    """Kinds of resources, those first to which others refer."""
    return sorted(kinds, key=lambda kind: (kind != MEDICATION, kind != "Encounter"))


def forget_referred(bench: duckdb.DuckDBPyConnection) -> None:
    """Nothing to refer to yet."""
    bench.execute(
        'CREATE OR REPLACE TEMP TABLE medication (drug_key UBIGINT, codings STRUCT("system" VARCHAR, code VARCHAR)[])'
    )
    bench.execute(
        "CREATE OR REPLACE TEMP TABLE stay (encounter_event UBIGINT, stay_end TIMESTAMP, stay_known TIMESTAMP)"
    )


def note_medications(bench: duckdb.DuckDBPyConnection, resources: str) -> tuple[int, int]:
    """Keep what every Medication is and consists of, however deep; says how many there are, and lines that are none."""
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE brought AS
        SELECT key(id) AS drug, list_concat(code.coding, {contained_codings()}) AS codings,
            [list_concat(one.itemCodeableConcept.coding, one.item.concept.coding) for one in ingredient] AS inside,
            [key(referred(coalesce(one.itemReference.reference, one.item.reference.reference), 'Medication'))
                for one in ingredient] AS pieces,
            coalesce(resourceType = 'Medication' AND id IS NOT NULL, false) AS good
        FROM {resources}
        QUALIFY id IS NULL OR row_number() OVER (
            PARTITION BY id
            ORDER BY moment(meta.lastUpdated) DESC NULLS LAST, try_cast(meta.versionId AS BIGINT) DESC NULLS LAST
        ) = 1
        """
    )
    bench.execute(
        """
        CREATE OR REPLACE TEMP TABLE medication AS
        WITH RECURSIVE piece AS (SELECT drug, unnest(pieces) AS piece FROM brought WHERE good),
        reached AS (
            SELECT drug, drug AS piece FROM brought WHERE good
            UNION SELECT r.drug, p.piece FROM reached r JOIN piece p ON p.drug = r.piece WHERE p.piece IS NOT NULL
        )
        SELECT r.drug AS drug_key, flatten(list(list_concat(b.codings, flatten(b.inside)))) AS codings
        FROM reached r JOIN brought b ON b.drug = r.piece WHERE b.good GROUP BY r.drug
        """
    )
    good, broken = bench.execute("SELECT count(*) FILTER (good), count(*) FILTER (NOT good) FROM brought").fetchall()[0]
    bench.execute("DROP TABLE brought")
    return good, broken


def note_stays(bench: duckdb.DuckDBPyConnection, encounters: Path) -> None:
    """Keep when every encounter ended, and from when on that is known; while it lasts, when it began, and null."""
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE stay AS
        SELECT event AS encounter_event, any_value(coalesce(ended, "time")) AS stay_end,
            any_value("until") AS stay_known
        FROM read_parquet({text(encounters)}) WHERE reason IS NULL OR reason = 'no subject' GROUP BY event
        """
    )
