"""Which tables of the Common Data Model a database has, with which columns, and which version it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TableClause, column, inspect, null, select, table
from sqlalchemy.exc import SQLAlchemyError

from spinney.connectors.database import batches, failed, run_statement
from spinney.connectors.omop.records import DETAIL, ERAS, RECORDS, VERSIONS, cdm_version
from spinney.errors import SourceFailed

MEND = "mend cdm_schema and vocabulary_schema in site.yaml, or the rights of its user"


class Model:
    """The tables that there are. SourceFailed where there is no person or no concept, or another version."""

    def __init__(
        self,
        connection: Connection,
        cdm_schema: str | None,
        vocabulary_schema: str | None,
        results_schema: str | None = None,
    ) -> None:
        self.connection = connection
        self._cdm, self._vocabulary = cdm_schema, vocabulary_schema or cdm_schema
        self._names: dict[str | None, dict[str, str]] = {}
        self._inspector = inspect(connection)
        try:
            self.person = self._needed("person", self._cdm, "cdm_schema")
            self.concept = self._needed("concept", self._vocabulary, "vocabulary_schema")
            self.ancestor = self._find("concept_ancestor", self._vocabulary)
            self.cohort = self._find("cohort", results_schema or cdm_schema)
            records = chain(*RECORDS.values(), *ERAS.values(), (DETAIL,))
            wanted = sorted({record.table for record in records} | {"death", "cdm_source"})
            self.tables = {name: found for name in wanted if (found := self._find(name, self._cdm)) is not None}
        except SQLAlchemyError as error:
            raise failed("the tables of OMOP", error, MEND) from None
        self.version = self._version()

    def read(self, statement: Select[Any], what: str, **bound: Any) -> Iterator[Sequence[Sequence[Any]]]:
        """The rows of a query, some at a time."""
        with closing(run_statement(self.connection, statement, bound, what, MEND)) as result:
            yield from batches(result, what)

    def rows(self, statement: Select[Any], what: str) -> list[Sequence[Any]]:
        """All rows of a query that has few."""
        return list(chain.from_iterable(self.read(statement, what)))

    def _needed(self, name: str, schema: str | None, key: str) -> TableClause:
        found = self._find(name, schema)
        if found is None:
            others = [one for one in self._inspector.get_schema_names() if name in self._tables_in(one)]
            hint = f"; it is in {', '.join(others[:3])}" if others else ""
            where = f"the schema {schema}" if schema else "the user's own schema"
            raise SourceFailed(f"{where} has no table {name}{hint}; mend {key} in site.yaml")
        return found

    def _find(self, name: str, schema: str | None) -> TableClause | None:
        written = self._tables_in(schema).get(name)
        if written is None:
            return None
        there = [str(one["name"]) for one in self._inspector.get_columns(written, schema)]
        return table(written, *(column(one) for one in there), schema=schema)

    def _tables_in(self, schema: str | None) -> Mapping[str, str]:
        """Tables and views by their names in small letters."""
        if schema not in self._names:
            found = [*self._inspector.get_table_names(schema), *self._inspector.get_view_names(schema)]
            self._names[schema] = {str(name).lower(): str(name) for name in found}
        return self._names[schema]

    def _version(self) -> str:
        """What cdm_source says, or else what the columns are called."""
        source, visits = self.tables.get("cdm_source"), self.tables.get("visit_occurrence")
        said = None if source is None else has(source, "cdm_version")
        for (words,) in [] if said is None else self.rows(select(said), "cdm_source"):
            version = cdm_version(str(words or ""))
            if version in VERSIONS:
                return version
            if version is not None:
                raise SourceFailed(f"cdm_source says CDM {version}; what can be read is {' and '.join(VERSIONS)}")
        return "5.3" if visits is not None and has(visits, "discharge_to_concept_id") is not None else "5.4"


def has(there: Any, *called: str) -> ColumnElement[Any] | None:
    """The first of these columns that a table has, however it writes capitals; None: it has none."""
    by_name = {str(one.name).lower(): one for one in there.c}
    return next((by_name[name] for name in called if name in by_name), None)


def of(there: Any, *called: str) -> ColumnElement[Any]:
    """The first of these columns that a table has, or null."""
    found = has(there, *called)
    return null() if found is None else found


def needed(there: Any, called: str) -> ColumnElement[Any]:
    """A column that every such table has. SourceFailed names it if it is missing."""
    found = has(there, called)
    if found is None:
        raise SourceFailed(f"the table {there.name} has no column {called}; is it one of OMOP's? mend cdm_schema")
    return found
