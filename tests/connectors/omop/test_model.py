"""Which tables there are, and which version they are of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spinney.connectors.database import Database
from spinney.connectors.omop.model import Model, has, needed, of
from spinney.errors import SourceFailed
from tests.connectors.omop.conftest import CONCEPTS, PERSON, Opened


def test_tables_and_columns_are_found_however_capitals_are_written(opened: Opened) -> None:
    upper = [statement.upper() for statement in (*PERSON, *CONCEPTS)]
    with opened(*upper, "CREATE VIEW DEATH AS SELECT 1 AS PERSON_ID") as model:
        assert has(model.person, "person_id") is not None
        assert has(model.tables["death"], "person_id") is not None
        assert "measurement" not in model.tables


def test_a_column_that_is_not_there_is_null_or_an_error_that_names_it(opened: Opened) -> None:
    with opened(*PERSON, *CONCEPTS) as model:
        assert has(model.person, "year_of_birth") is None
        assert str(of(model.person, "year_of_birth")) == "NULL"
        with pytest.raises(SourceFailed, match="person has no column year_of_birth"):
            needed(model.person, "year_of_birth")


@pytest.mark.parametrize(
    ("statements", "version"),
    [
        (["CREATE TABLE cdm_source (cdm_version VARCHAR)", "INSERT INTO cdm_source VALUES ('v5.3.1')"], "5.3"),
        (["CREATE TABLE visit_occurrence (discharge_to_concept_id INTEGER)"], "5.3"),
        (["CREATE TABLE visit_occurrence (discharged_to_concept_id INTEGER)"], "5.4"),
        (["CREATE TABLE cdm_source (cdm_version VARCHAR)"], "5.4"),
    ],
)
def test_the_version_is_what_cdm_source_says_or_else_the_columns(
    opened: Opened, statements: list[str], version: str
) -> None:
    with opened(*PERSON, *CONCEPTS, *statements) as model:
        assert model.version == version


def test_another_version_is_refused_by_name(opened: Opened) -> None:
    source = ["CREATE TABLE cdm_source (cdm_version VARCHAR)", "INSERT INTO cdm_source VALUES ('6.0')"]
    with (
        pytest.raises(SourceFailed, match=r"CDM 6\.0; what can be read is 5\.3 and 5\.4"),
        opened(*PERSON, *CONCEPTS, *source),
    ):
        pass


def test_a_schema_without_the_tables_is_named_with_the_one_that_has_them(postgres: Callable[..., str]) -> None:
    url = postgres("CREATE SCHEMA cdm", "CREATE TABLE cdm.person (person_id INTEGER)")
    with (
        Database(url).connected() as connection,
        pytest.raises(SourceFailed, match=r"the user's own schema has no table person; it is in cdm; mend cdm_schema"),
    ):
        Model(connection, None, None)
    with (
        Database(url).connected() as connection,
        pytest.raises(SourceFailed, match=r"the schema cdm has no table concept; mend vocabulary_schema"),
    ):
        Model(connection, "cdm", None)
