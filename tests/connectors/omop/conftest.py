"""Small databases with tables of OMOP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from spinney.connectors.database import Database
from spinney.connectors.omop.model import Model

CONCEPTS = (
    "CREATE TABLE concept (concept_id INTEGER, vocabulary_id VARCHAR(20), concept_code VARCHAR(50))",
    "INSERT INTO concept VALUES (201826, 'SNOMED', '44054006'), (45, 'ICD10CM', 'E11.9'), (7, 'House', 'x')",
)
PERSON = ("CREATE TABLE person (person_id INTEGER)",)

Opened = Callable[..., AbstractContextManager[Model]]


@pytest.fixture
def opened(sqlite: Callable[..., str]) -> Opened:
    """The model of a database made of some statements."""

    @contextmanager
    def model(*statements: str) -> Iterator[Model]:
        with Database(sqlite(*statements)).connected() as connection:
            yield Model(connection, None, None)

    return model
