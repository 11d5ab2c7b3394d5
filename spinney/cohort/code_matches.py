"""Which of a source's codes a study means: prefixes and sets become the codes that occur, once, before any join.

So everything after that joins by equality, however many codes a set has or however short a prefix is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from spinney.connectors.duck import text
from spinney.study.codes import Vocabulary, is_exact, written_out
from spinney.study.definition import Events
from spinney.study.study import Study


def matched(
    bench: duckdb.DuckDBPyConnection, events: Mapping[str, Path], codes: Mapping[str, str], study: Study
) -> Study:
    """The study with codes that occur in `events` (files by kind) in place of its prefixes and sets.

    `codes` maps the site's codes to the study's. What nothing matches stays as it is written, and so can be told.
    """
    kinds = {one.kind for _, one in study.choices if not all(map(is_exact, one.codes))}
    if not kinds:
        return study
    known = {kind: Vocabulary(occurring(bench, events[kind], codes)) for kind in kinds & events.keys()}
    return study.with_codes(lambda _, one: _matched(one, known.get(one.kind), study))


def occurring(bench: duckdb.DuckDBPyConnection, file: Path, codes: Mapping[str, str]) -> set[str]:
    """The codes of a staged file, in the study's words."""
    found = bench.execute(
        f"SELECT DISTINCT code FROM read_parquet({text(file)}) WHERE code IS NOT NULL"  # noqa: S608 (our own file)
    ).fetchall()
    return {codes.get(code, code) for (code,) in found}


def _matched(events: Events, known: Vocabulary | None, study: Study) -> tuple[str, ...]:
    if known is None:
        return events.codes
    found: dict[str, None] = {}
    for code in events.codes:
        meant = [there for one in written_out([code], study.pinned) for there in known.meant_by(one)]
        found.update(dict.fromkeys(meant or [code]))
    return tuple(found)
