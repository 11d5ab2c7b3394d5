"""How many events of each code that a study names a site has: counts above a floor, of patients as of events."""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from spinney.cohort.pull import PullPlan, staged_events
from spinney.cohort.pull_report import PullReport
from spinney.connectors.duck import text, text_list, timestamp
from spinney.connectors.fhir.shapes import never_happened
from spinney.connectors.sources import Progress
from spinney.errors import CohortRejected
from spinney.study.codes import Vocabulary, written_out
from spinney.study.study import Study

MOST_SHOWN = 10


@dataclass(frozen=True)
class Counted:
    """Events and patients; None: there are some, of fewer patients than the floor."""

    events: int | None
    patients: int | None

    @classmethod
    def above(cls, floor: int, events: int, patients: int) -> Counted:
        """The counts, or that there are too few to be told."""
        return cls(None, None) if 0 < patients < floor else cls(events, patients)


@dataclass(frozen=True)
class CodeCount:
    """What a site has of one code, prefix or set as it is written in a study."""

    total: Counted
    codes: Mapping[str, Counted]
    """By code that occurs, the most frequent first; at most ten, and none of fewer patients than the floor."""
    more: int
    """How many other codes occur."""


def count_codes(
    study: Study,
    plan: PullPlan,
    *,
    now: datetime | None = None,
    progress: Progress | None = None,
    report: PullReport | None = None,
) -> dict[tuple[str, str], CodeCount]:
    """By resource type and written code, what there is of it. Nothing is kept, and those who object are not counted."""
    if study.cohort is None or plan.table_columns:
        raise CohortRejected("the site has events", advice="a finished table has no codes to be counted")
    until = plan.moment(now)
    asked = dict.fromkeys((one.kind, code) for _, one in study.choices for code in one.codes)
    found: dict[tuple[str, str], CodeCount] = {}
    with staged_events(study, plan, now=now, progress=progress, report=report) as (bench, staged):
        _map(bench, plan.maps.codes)
        for kind in sorted({kind for kind, _ in asked}):
            file = staged.events.get(kind)
            counts = _Counts(bench, file, kind, until, study.privacy.smallest_leaf)
            for code in (code for of, code in asked if of == kind):
                found[kind, code] = counts.of(written_out([code], study.pinned))
    return {one: found[one] for one in asked}


def _map(bench: duckdb.DuckDBPyConnection, codes: Mapping[str, str]) -> None:
    theirs, ours = pa.array(codes.keys(), pa.string()), pa.array(codes.values(), pa.string())
    bench.register("mapping", pa.table({"theirs": theirs, "ours": ours}))
    bench.execute("CREATE OR REPLACE TEMP TABLE code_map AS SELECT * FROM mapping")
    bench.unregister("mapping")


class _Counts:
    """Of the events of one kind that count."""

    def __init__(
        self, bench: duckdb.DuckDBPyConnection, file: Path | None, kind: str, now: datetime, floor: int
    ) -> None:
        self._bench, self._floor, self._known = bench, floor, Vocabulary(())
        if file is None:
            return
        bench.execute(
            "CREATE OR REPLACE TEMP TABLE counted AS SELECT coalesce(m.ours, e.code) AS code, event, patient "
            f"FROM read_parquet({text(file)}) e LEFT JOIN code_map m ON m.theirs = e.code "
            f'WHERE e.code IS NOT NULL AND reason IS NULL AND "time" <= {timestamp(now)} '
            f"AND (status IS NULL OR status NOT IN ({text_list(never_happened(kind))}))"
        )
        self._known = Vocabulary([code for (code,) in bench.execute("SELECT DISTINCT code FROM counted").fetchall()])

    def of(self, written: Sequence[str]) -> CodeCount:
        meant = sorted({code for one in written for code in self._known.meant_by(one)})
        if not meant:
            return CodeCount(Counted(0, 0), {}, 0)
        self._bench.register("meant", pa.table({"code": meant}))
        how_many = "count(DISTINCT event), count(DISTINCT patient)"
        of_these = "FROM counted WHERE code IN (SELECT code FROM meant)"
        events, patients = self._bench.execute(f"SELECT {how_many} {of_these}").fetchall()[0]
        rows = self._bench.execute(
            f"SELECT code, {how_many} {of_these} GROUP BY code HAVING count(DISTINCT patient) >= {self._floor} "
            f"ORDER BY 2 DESC, code LIMIT {MOST_SHOWN}"
        ).fetchall()
        self._bench.unregister("meant")
        shown = {code: Counted(of_code, whose) for code, of_code, whose in rows}
        return CodeCount(Counted.above(self._floor, events, patients), shown, len(meant) - len(shown))
