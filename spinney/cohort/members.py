"""Of whom a study's rule `member_of` is true, and when: members of the groups that it means."""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import duckdb
import pyarrow as pa

from spinney.cohort.population import means
from spinney.cohort.pull_report import PullReport
from spinney.cohort.recipes import definition_of
from spinney.connectors.duck import text_list, timestamp
from spinney.connectors.sources import GROUP
from spinney.errors import CohortRejected
from spinney.study.codes import pattern_of, written_out
from spinney.study.definition import Membership
from spinney.study.study import Study


def find_members(
    bench: duckdb.DuckDBPyConnection, study: Study, group_names: Mapping[str, str], now: datetime, report: PullReport
) -> None:
    """Fill `membership` with who is in a group of each rule of the study, and when. CohortRejected if there is none.

    A member that is inactive counts until its end, if that is told and over; else nobody knows since when it is not.
    """
    bench.execute(
        "CREATE OR REPLACE TEMP TABLE membership (rule INT, patient VARCHAR, since TIMESTAMP, till TIMESTAMP)"
    )
    rules = definition_of(study).eligible.member_of
    if not rules:
        return
    theirs, ours = pa.array(group_names.keys(), pa.string()), pa.array(group_names.values(), pa.string())
    bench.register("mapping", pa.table({"theirs": theirs, "ours": ours}))
    bench.execute("CREATE OR REPLACE TEMP TABLE group_map AS SELECT * FROM mapping")
    bench.unregister("mapping")
    for number, rule in enumerate(rules):
        bench.execute(f"CREATE OR REPLACE TEMP TABLE meant AS {_meant(rule, study)}")
        _refuse_nothing(bench, rule)
        _tell(bench, rule, now, report)
        bench.execute(
            f"INSERT INTO membership SELECT DISTINCT {number}, patient, since, till FROM member "
            f"WHERE nth IN (SELECT nth FROM meant) AND reason IS NULL AND NOT ({_gone(now)})"
        )


def _gone(now: datetime) -> str:
    return f"inactive AND (till IS NULL OR till > {timestamp(now)})"


def _meant(rule: Membership, study: Study) -> str:
    """SQL for the groups that a rule means, whether or not they count."""
    codes = [pattern_of(code) for code in written_out(rule.codes, study.pinned)]

    def named(column: str) -> str:
        return f"{column} IN ({text_list(rule.identifiers)})" if rule.identifiers else "false"

    def coded(column: str) -> str:
        return f"({' OR '.join(means(column, code) for code in codes) or 'false'})"

    return f"""
        SELECT DISTINCT p.nth, p.reason FROM patient_group p JOIN group_name n ON n.nth = p.nth
        LEFT JOIN group_map g ON g.theirs = n.word LEFT JOIN code_map m ON m.theirs = n.word
        WHERE (n.way = 'identifier' AND {named("n.word")}) OR {named("g.ours")}
            OR (n.way = 'code' AND {coded("coalesce(m.ours, n.word)")}) OR {coded("g.ours")}"""


def _refuse_nothing(bench: duckdb.DuckDBPyConnection, rule: Membership) -> None:
    reasons = dict(bench.execute("SELECT coalesce(reason, ''), count(*) FROM meant GROUP BY 1").fetchall())
    if "" in reasons:
        return
    wrong = "; ".join(f"{count:,}: {reason}" for reason, count in sorted(reasons.items()))
    advice = f"it has {wrong}; mend that Group, or name another" if wrong else "name the one that you have"
    raise CohortRejected(
        f"the source has a group that is {' or '.join((*rule.identifiers, *rule.codes))} ({rule.name})",
        advice=f"{advice} under group_names in site.yaml, or look at what the source delivers",
    )


def _tell(bench: duckdb.DuckDBPyConnection, rule: Membership, now: datetime, report: PullReport) -> None:
    """What of the members can't count, and what is not known of those who do."""
    total, without, gone = bench.execute(
        f"SELECT count(*), count(*) FILTER (reason IS NULL AND since IS NULL), "
        f"count(*) FILTER (reason IS NULL AND {_gone(now)}) FROM member WHERE nth IN (SELECT nth FROM meant)"
    ).fetchall()[0]
    wrong = bench.execute(
        "SELECT reason, count(*) FROM member WHERE nth IN (SELECT nth FROM meant) AND reason IS NOT NULL GROUP BY 1"
    ).fetchall()
    set_aside = bench.execute("SELECT reason, count(*) FROM meant WHERE reason IS NOT NULL GROUP BY 1").fetchall()
    for reason, count in sorted(set_aside):
        report.notes.append(f"{rule.name}: {count:,} groups are set aside, {reason}")
    for reason, count in sorted(wrong):
        report.quarantined[GROUP, reason] += count
        report.notes.append(f"{rule.name}: {count:,} of {total:,} members don't count, {reason}")
    if gone:
        report.notes.append(f"{rule.name}: {gone:,} of {total:,} members are inactive, and nobody knows since when")
    if without:
        report.notes.append(f"{rule.name}: {without:,} of {total:,} members have no beginning, and count from ever on")
