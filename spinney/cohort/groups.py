"""Who is in which group and since when: FHIR Groups, or rows of a database that say the same.

https://hl7.org/fhir/R4/group.html (R5: https://hl7.org/fhir/R5/group.html). A Group counts where it names its members.
One that only describes them (definitional), counts them (quantity), leaves some out by a trait (exclude), is not active
or consists of other groups is set aside with that reason. Which group is meant, the study says by identifier or code.
"""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from spinney.connectors.duck import text, text_list
from spinney.connectors.sources import GROUP, GROUP_COLUMNS, Wanted
from spinney.study.codes import written_out
from spinney.study.study import Study

NO_PATIENT, BROKEN_DATE = "a member that is no patient", "broken date"
_REASONS = """
            WHEN resourceType IS NULL THEN 'not a FHIR resource'
            WHEN resourceType <> 'Group' THEN 'another resource type'
            WHEN id IS NULL THEN 'no id'
            WHEN active = 'false' THEN 'not active'
            WHEN actual = 'false' OR membership = 'definitional' THEN 'definitional: it describes, and names nobody'
            WHEN membership <> 'enumerated' OR coalesce(membership, actual) IS NULL
                THEN 'neither enumerated (actual) nor definitional'
            WHEN len([one for one in characteristic if one.exclude = 'true']) > 0
                THEN 'it leaves members out by a characteristic (exclude)'
            WHEN coalesce(len(member), 0) = 0 AND quantity <> '0' THEN 'it says how many (quantity), and names nobody'
            WHEN len([one for one in member if contains(one.entity.reference, 'Group/')]) > 0
                THEN 'groups are members of it'
            WHEN id IN (SELECT id FROM invalid) THEN 'not valid FHIR'"""


def wanted_groups(study: Study, group_names: Mapping[str, str]) -> list[Wanted]:
    """What to ask a source for: nothing, unless the study has such a rule; else all groups, or those of these names."""
    rules = study.cohort.eligible.member_of if study.cohort else ()
    written = {one for rule in rules for one in (*rule.identifiers, *written_out(rule.codes, study.pinned))}
    named = sorted(written | {theirs for theirs, ours in group_names.items() if _is_meant(ours, written)})
    return [Wanted(GROUP, tuple(named))] if rules else []


def _is_meant(word: str, written: set[str]) -> bool:
    return word in written or any("*" in one for one in written)


def forget_groups(bench: duckdb.DuckDBPyConnection) -> None:
    """No group and no member yet."""
    bench.execute("CREATE OR REPLACE TEMP TABLE patient_group (nth BIGINT, reason VARCHAR)")
    bench.execute("CREATE OR REPLACE TEMP TABLE group_name (nth BIGINT, way VARCHAR, word VARCHAR)")
    bench.execute(
        "CREATE OR REPLACE TEMP TABLE member (nth BIGINT, patient VARCHAR, since TIMESTAMP, till TIMESTAMP, "
        "inactive BOOLEAN, reason VARCHAR)"
    )


def note_groups(bench: duckdb.DuckDBPyConnection, resources: str) -> dict[str, int]:
    """Keep the newest version of every FHIR Group; says how many there are by reason, "" those that count."""
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE brought AS
        SELECT *, row_number() OVER () AS nth, CASE {_REASONS} END AS reason FROM {resources}
        QUALIFY id IS NULL OR row_number() OVER (
            PARTITION BY id
            ORDER BY moment(meta.lastUpdated) DESC NULLS LAST, try_cast(meta.versionId AS BIGINT) DESC NULLS LAST
        ) = 1
        """
    )
    bench.execute("INSERT INTO patient_group SELECT nth, reason FROM brought")
    for way, words in (
        ("id", "[id]"),
        ("identifier", '[one."system" || \'|\' || one."value" for one in identifier]'),
        ("code", "[coded(one) for one in code.coding]"),
    ):
        bench.execute(f"INSERT INTO group_name SELECT nth, {text(way)}, unnest({words}) FROM brought")
    bench.execute(
        f"""
        INSERT INTO member
        SELECT nth, person(one.entity.reference), {_span("one.period.start", "one.period.end")},
            coalesce(one.inactive = 'true', false), {_wrong("person(one.entity.reference)", "one.period")}
        FROM (SELECT nth, unnest(member) AS one FROM brought WHERE reason IS NULL)
        """
    )
    bench.execute("DROP TABLE brought")
    counts = bench.execute("SELECT coalesce(reason, ''), count(*) FROM patient_group GROUP BY 1").fetchall()
    return dict(counts)


def note_member_rows(bench: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> dict[str, int]:
    """Keep the rows of a database, each a member of a group for a while; says how many there are by reason."""
    source = f"read_parquet([{text_list(files)}], union_by_name = true)"
    there = {row[0] for row in bench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    columns = ", ".join(
        (f'CAST("{column}" AS VARCHAR)' if column in there else "NULL::VARCHAR") + f' AS "{column}"'
        for column in GROUP_COLUMNS
    )
    bench.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE brought AS
        SELECT patient, struct_pack("start" := "start", "end" := "end") AS period, "group" AS called,
            dense_rank() OVER (ORDER BY "group") AS nth FROM (SELECT {columns} FROM {source})
        """
    )
    bench.execute("INSERT INTO patient_group SELECT DISTINCT nth, NULL::VARCHAR FROM brought WHERE called IS NOT NULL")
    bench.execute(
        "INSERT INTO group_name SELECT DISTINCT nth, unnest(['id', 'identifier', 'code']), called FROM brought "
        "WHERE called IS NOT NULL"
    )
    bench.execute(
        f"""
        INSERT INTO member
        SELECT nth, patient, {_span("period.start", "period.end")}, false,
            CASE WHEN called IS NULL THEN 'no group' ELSE {_wrong("patient", "period")} END FROM brought
        """
    )
    bench.execute("DROP TABLE brought")
    counts = bench.execute(
        "SELECT CASE WHEN reason = 'no group' THEN reason ELSE '' END, count(*) FROM member GROUP BY 1"
    ).fetchall()
    return dict(counts)


def _span(start: str, end: str) -> str:
    """From when on it is known that somebody is in it, and until when: a day counts from its end, and to its end."""
    return f"known_from({start}), known_from({end})"


def _wrong(patient: str, period: str) -> str:
    return (
        f"CASE WHEN {patient} IS NULL THEN {text(NO_PATIENT)} "
        f"WHEN broken({period}.start) OR broken({period}.end) THEN {text(BROKEN_DATE)} END"
    )
