"""Statements for databases with tables of OMOP, and what the source leaves of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from spinney.connectors.sources import Surroundings, Wanted
from spinney.connectors.sources.omop import OmopSettings
from spinney.demo.omop import DISCHARGE, TABLES

SNOMED, LOINC = "http://snomed.info/sct", "http://loinc.org"
CONCEPTS = {
    201826: ("SNOMED", "44054006"),
    45533022: ("ICD10CM", "E11.9"),
    3004501: ("LOINC", "2345-7"),
    3000001: ("LOINC", "88020-3"),
    4000001: ("SNOMED", "420300004"),
    8753: ("UCUM", "mmol/L"),
    9201: ("Visit", "IP"),
    9202: ("Visit", "OP"),
    1503297: ("RxNorm", "6809"),
    40213000: ("CVX", "140"),
}
DETAILS = (
    "visit_detail_id INTEGER, person_id INTEGER, visit_detail_concept_id INTEGER, visit_detail_start_date DATE, "
    "visit_detail_start_datetime TIMESTAMP, visit_detail_end_date DATE, visit_occurrence_id INTEGER, {parent} INTEGER"
)
COHORT = "cohort_definition_id INTEGER, subject_id INTEGER, cohort_start_date DATE, cohort_end_date DATE"
PARENT = {"5.3": "visit_detail_parent_id", "5.4": "parent_visit_detail_id"}
ERA = (
    "drug_era_id INTEGER, person_id INTEGER, drug_concept_id INTEGER, drug_era_start_date DATE, drug_era_end_date DATE"
)

Rows = list[dict[str, Any]]


def model(*rows: tuple[str, dict[str, object]], version: str = "5.4") -> list[str]:
    """Statements for the tables of the model, with concepts and some rows in them."""
    tables = TABLES | {"visit_detail": DETAILS, "drug_era": ERA, "cohort": COHORT}
    words = {"discharge": DISCHARGE[version], "parent": PARENT[version]}
    made = [f"CREATE TABLE {table} ({columns.format(**words)})" for table, columns in tables.items()]
    known = [
        insert("concept", concept_id=concept, vocabulary_id=vocabulary, concept_code=code)
        for concept, (vocabulary, code) in CONCEPTS.items()
    ]
    people = [insert("person", person_id=1, year_of_birth=1950, gender_concept_id=8532, person_source_value="ann")]
    return [*made, *known, *people, *(insert(table, **content) for table, content in rows)]


def insert(table: str, **row: object) -> str:
    values = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row.values())
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"


def pull(url: str, folder: Path, *wanted: Wanted, **settings: Any) -> dict[str, Rows]:
    pulled = OmopSettings(url=url, **settings).open(Surroundings()).pull(wanted, folder, lambda *_: None)
    return {kind: pq.read_table(files[0]).to_pylist() for kind, files in pulled.files.items()}


def diagnosis(number: int = 1, **more: object) -> tuple[str, dict[str, object]]:
    row = {"condition_occurrence_id": number, "person_id": 1, "condition_concept_id": 201826}
    return "condition_occurrence", {**row, "condition_start_date": "2022-03-01", **more}


def measured(**more: object) -> tuple[str, dict[str, object]]:
    row = {"measurement_id": 1, "person_id": 1, "measurement_concept_id": 3004501, "measurement_date": "2022-03-01"}
    return "measurement", {**row, **more}


def stay(number: int = 1, **more: object) -> tuple[str, dict[str, object]]:
    row = {"visit_occurrence_id": number, "person_id": 1, "visit_concept_id": 9201, "visit_start_date": "2022-03-01"}
    return "visit_occurrence", {**row, "visit_end_date": "2022-03-05", **more}
