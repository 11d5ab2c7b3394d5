"""A made-up history in the tables of OMOP."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import create_engine, text

from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.omop import TABLES, concepts, write_omop


@pytest.fixture(scope="module")
def beech() -> MadeUpHistory:
    """The hospital that writes in its own way."""
    return make_history(make_hospitals(4, 300, 5)[2], 5)


@pytest.fixture
def url(beech: MadeUpHistory, tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/omop.sqlite"
    write_omop(beech, address)
    return address


def rows(url: str, query: str) -> pd.DataFrame:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(query)).mappings().all()
    engine.dispose()
    return pd.DataFrame([dict(one) for one in found])


def test_every_event_of_the_history_is_a_row_of_its_table(url: str, beech: MadeUpHistory):
    counts = {table: len(rows(url, f"SELECT * FROM {table}")) for table in TABLES}
    assert counts["person"] == counts["observation_period"] == len(beech.patients)
    assert counts["visit_occurrence"] == len(beech.events["Encounter"])
    assert counts["measurement"] + counts["observation"] == len(beech.events["Observation"])
    assert counts["condition_occurrence"] == len(beech.events["Condition"])
    assert counts["drug_exposure"] == len(beech.events["MedicationRequest"])
    assert counts["death"] == beech.patients["died"].notna().sum()


def test_every_event_has_a_standard_concept_and_what_the_hospital_wrote(url: str):
    found = rows(
        url, "SELECT m.*, c.vocabulary_id FROM measurement m JOIN concept c ON c.concept_id = m.measurement_concept_id"
    )
    assert len(found) == len(rows(url, "SELECT * FROM measurement"))
    assert set(found["vocabulary_id"]) == {"LOINC"}
    assert {"KREA", "8480-6"} <= set(found["measurement_source_value"])
    assert (found["measurement_source_concept_id"] == 0).any()


def test_concepts_are_told_apart_by_their_number():
    assert concepts()["concept_id"].is_unique
    assert not concepts().duplicated(["vocabulary_id", "concept_code"]).any()


@pytest.mark.parametrize(
    ("version", "column"), [("5.3", "discharge_to_concept_id"), ("5.4", "discharged_to_concept_id")]
)
def test_either_version_can_be_written_and_replaces_what_was_there(
    url: str, beech: MadeUpHistory, version: str, column: str
):
    write_omop(beech, url, version)
    assert rows(url, "SELECT cdm_version FROM cdm_source")["cdm_version"].tolist() == [f"v{version}"]
    assert column in rows(url, "SELECT * FROM visit_occurrence LIMIT 1")
