"""CSV and Parquet files of codes: a column `code`, with `system` or as system|code, and `parent` for a hierarchy."""
# ruff: noqa: S608 (SQL made of our own words; file names and columns go through text and name)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from spinney.connectors.duck import name, text
from spinney.connectors.terminology.code_systems import MOST_CONCEPTS, CodeSystem
from spinney.connectors.terminology.members import STAR, Members
from spinney.errors import StudyInvalid

NAMES = {
    "code": ("code", "concept_code"),
    "system": ("system", "codesystem", "vocabulary_id"),
    "parent": ("parent", "parent_code"),
}
LONGEST_HEADER = 1 << 16


class CodeTable:
    """A file of codes; reads nothing but its columns before it is asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = _rows_of(path)
        with duckdb.connect() as bench:
            try:
                found = bench.execute(f"SELECT * FROM {self.rows} LIMIT 0").description or []
            except duckdb.Error as error:
                raise _unreadable(path, error) from None
        self.columns = {column[0].strip().lower(): column[0] for column in found}

    def column(self, what: str) -> str | None:
        """The column that says this, under one of its usual names."""
        return next((self.columns[one] for one in NAMES[what] if one in self.columns), None)

    @property
    def has_parents(self) -> bool:
        """Whether it says what is below what."""
        return self.column("parent") is not None

    def members(self) -> Members:
        """The codes that it lists; one that ends in a star means every code that begins so."""
        found: dict[tuple[str, bool], set[str]] = {}
        for system, word, _ in self._codes():
            begins = word.endswith(STAR)
            found.setdefault((system, begins), set()).add(word.removesuffix(STAR))
        members = Members()
        for (system, begins), words in found.items():
            members |= Members.of(system, begin=words) if begins else Members.of(system, words)
        return members

    def code_systems(self) -> dict[str, CodeSystem]:
        """What is below what, by system."""
        systems: dict[str, CodeSystem] = {}
        for system, word, parent in self._codes():
            systems.setdefault(system, CodeSystem(system)).add(word, [parent] if parent else ())
        return systems

    def _codes(self) -> Iterator[tuple[str, str, str | None]]:
        code, system, parent = (self.column(what) for what in ("code", "system", "parent"))
        if code is None:
            raise StudyInvalid(
                [f"{self.path.name}: needs a column `code`, and `system` where codes are not system|code"]
            )
        asked = ", ".join(f"trim({name(one)}::VARCHAR)" if one else "NULL" for one in (system, code, parent))
        with duckdb.connect() as bench:
            try:
                rows = bench.execute(f"SELECT DISTINCT {asked} FROM {self.rows} LIMIT {MOST_CONCEPTS + 1}").fetchall()
            except duckdb.Error as error:
                raise _unreadable(self.path, error) from None
        if len(rows) > MOST_CONCEPTS:
            raise StudyInvalid([f"{self.path.name}: more than {MOST_CONCEPTS:,} rows; take the part that is needed"])
        without = 0
        for said, written, above in rows:
            of, _, word = (said, "", written) if system else (written or "").partition("|")
            without += not (of and word)
            if of and word:
                yield of, word, (above if system else (above or "").partition("|")[2]) or None
        if without:
            raise StudyInvalid(
                [f"{self.path.name}: {without:,} rows have no system or no code; complete or delete them"]
            )


def _rows_of(path: Path) -> str:
    if path.name.lower().endswith(".parquet"):
        return f"read_parquet({text(path)})"
    try:
        with path.open("rb") as file:
            head = file.readline(LONGEST_HEADER)
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})"]) from None
    mark = max(b",;\t", key=head.count)
    quote = "" if mark == ord("\t") else '"'  # vocabularies that OHDSI hands out have tabs, and quotes mean nothing
    return (
        f"read_csv({text(path)}, header = true, all_varchar = true, delim = {text(chr(mark))}, quote = {text(quote)})"
    )


def _unreadable(path: Path, error: duckdb.Error) -> StudyInvalid:
    return StudyInvalid([f"{path.name}: cannot be read as a table ({type(error).__name__}); save it as UTF-8 CSV"])
