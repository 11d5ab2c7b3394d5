"""The worked example for OMOP CDM 5.4, on a real PostgreSQL with tables of that model."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from spinney.cohort.pull_report import PullReport
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings, read_site
from spinney.configuration.study_file import read_study
from tests.made_up import pull_at
from tests.places import ROOT

EXAMPLES = ROOT / "docs" / "examples"

# The columns of CDM 5.4 that a hospital fills; types as in the published DDL for PostgreSQL.
TABLES = (
    """CREATE TABLE person (person_id INTEGER, gender_concept_id INTEGER, year_of_birth INTEGER, month_of_birth INTEGER,
    day_of_birth INTEGER, birth_datetime TIMESTAMP, person_source_value VARCHAR(50))""",
    "CREATE TABLE death (person_id INTEGER, death_date DATE, death_datetime TIMESTAMP, cause_concept_id INTEGER)",
    """CREATE TABLE visit_occurrence (visit_occurrence_id INTEGER, person_id INTEGER, visit_concept_id INTEGER,
    visit_start_date DATE, visit_start_datetime TIMESTAMP, visit_end_date DATE, visit_end_datetime TIMESTAMP)""",
    """CREATE TABLE measurement (measurement_id INTEGER, person_id INTEGER, measurement_concept_id INTEGER,
    measurement_date DATE, measurement_datetime TIMESTAMP, value_as_number NUMERIC, value_as_concept_id INTEGER,
    unit_concept_id INTEGER, unit_source_value VARCHAR(50))""",
    """CREATE TABLE observation (observation_id INTEGER, person_id INTEGER, observation_concept_id INTEGER,
    observation_date DATE, observation_datetime TIMESTAMP, value_as_number NUMERIC, value_as_string VARCHAR(60),
    value_as_concept_id INTEGER, unit_concept_id INTEGER)""",
    """CREATE TABLE condition_occurrence (condition_occurrence_id INTEGER, person_id INTEGER,
    condition_concept_id INTEGER, condition_start_date DATE, condition_start_datetime TIMESTAMP,
    condition_end_date DATE, condition_end_datetime TIMESTAMP)""",
    """CREATE TABLE drug_exposure (drug_exposure_id INTEGER, person_id INTEGER, drug_concept_id INTEGER,
    drug_exposure_start_date DATE, drug_exposure_start_datetime TIMESTAMP)""",
    """CREATE TABLE procedure_occurrence (procedure_occurrence_id INTEGER, person_id INTEGER,
    procedure_concept_id INTEGER, procedure_date DATE, procedure_datetime TIMESTAMP, procedure_end_date DATE,
    procedure_end_datetime TIMESTAMP)""",
    """CREATE TABLE concept (concept_id INTEGER, concept_name VARCHAR(255), vocabulary_id VARCHAR(20),
    concept_code VARCHAR(50))""",
)
ROWS = (
    """INSERT INTO concept VALUES (3004249, 'Systolic blood pressure', 'LOINC', '8480-6'),
    (3038553, 'Body mass index', 'LOINC', '39156-5'), (3004501, 'Glucose', 'LOINC', '2339-0'),
    (40762636, 'Tobacco smoking status', 'LOINC', '72166-2'), (1, 'Never smoker', 'SNOMED', '266919005'),
    (8876, 'millimeter mercury column', 'UCUM', 'mm[Hg]'), (9531, 'kilogram per square meter', 'UCUM', 'kg/m2'),
    (8753, 'millimole per liter', 'UCUM', 'mmol/L'), (316866, 'Hypertensive disorder', 'SNOMED', '38341003'),
    (974166, 'hydrochlorothiazide', 'RxNorm', '5487'), (2, 'Colonoscopy', 'SNOMED', '73761001')""",
    "INSERT INTO person VALUES (1, 8532, 1960, 5, 17, NULL, 'CANARY-1'), (2, 8507, 1950, NULL, NULL, NULL, 'CANARY-2')",
    "INSERT INTO death VALUES (2, '2023-09-01', NULL, 0)",
    """INSERT INTO visit_occurrence VALUES
    (1, 1, 9202, '2022-03-01', '2022-03-01 09:00', '2022-03-01', '2022-03-01 10:00'),
    (2, 1, 9203, '2022-08-01', '2022-08-01 09:00', '2022-08-01', '2022-08-01 12:00'),
    (3, 2, 9202, '2022-03-05', NULL, '2022-03-05', NULL),
    (4, 2, 9202, '2023-08-01', '2023-08-01 09:00', '2023-08-01', '2023-08-01 10:00')""",
    """INSERT INTO measurement VALUES
    (1, 1, 3004249, '2022-02-01', '2022-02-01 08:00', 120, 0, 8876, NULL),
    (2, 1, 3004249, '2022-03-01', '2022-03-01 09:10', 131, 0, 8876, NULL),
    (3, 1, 3004249, '2022-03-01', '2022-03-01 10:10', 199, 0, 8876, NULL),
    (4, 1, 3038553, '2022-03-01', '2022-03-01 09:10', 27.5, 0, 9531, NULL),
    (5, 1, 3004501, '2022-03-01', '2022-03-01 09:10', 5, 0, 8753, NULL),
    (6, 2, 3004249, '2022-03-04', NULL, 150, 0, NULL, 'mmHg'),
    (7, 2, 3038553, '2022-03-04', NULL, 31, 0, 9531, NULL)""",
    "INSERT INTO observation VALUES (1, 1, 40762636, '2022-02-01', NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO condition_occurrence VALUES (1, 2, 316866, '2015-01-01', NULL, NULL, NULL)",
    "INSERT INTO drug_exposure VALUES (1, 2, 974166, '2022-01-01', NULL), (2, 2, 974166, '2019-01-01', NULL)",
    "INSERT INTO procedure_occurrence VALUES (1, 1, 2, '2022-02-27', '2022-02-27 10:00', NULL, NULL)",
)


@pytest.fixture
def site(postgres: Callable[..., str], tmp_path: Path) -> SiteSettings:
    """The example as it is, but at the address of the test's own server."""
    example = read_site(EXAMPLES / "omop.yaml")
    source = example.source.model_copy(update={"url": postgres(*TABLES, *ROWS), "password_env": None})
    return example.model_copy(update={"source": source, "home": tmp_path})


def pulled(site: SiteSettings) -> tuple[pd.DataFrame, PullReport]:
    study = read_study(EXAMPLES / "synthea" / "study.yaml")
    result = pull_at(study, site, now=datetime(2024, 1, 1, tzinfo=UTC))
    return Vault(site.home).read(result.cohort).to_pandas().sort_values("index_time"), result.report


def test_omop_tables_give_rows_with_values_in_the_units_and_words_of_the_study(site: SiteSettings) -> None:
    rows, report = pulled(site)
    assert not report.quarantined
    assert rows["systolic"].tolist() == [131.0, 150.0]
    assert rows["glucose"].tolist()[0] == pytest.approx(90.078)
    assert rows["smoking"].tolist()[0] == "never"
    assert rows["hypertension"].tolist() == [0.0, 1.0]
    assert rows["orders"].tolist() == [0.0, 1.0]
    assert rows["age"].tolist() == [61.0, 72.0]
    assert rows["sex"].tolist() == ["female", "male"]
    assert rows["since_procedure"].tolist()[0] == pytest.approx(2.0)
    assert rows["acute_care"].tolist() == [1, 0]


def test_local_times_of_omop_are_those_of_the_hospital(site: SiteSettings) -> None:
    rows, _ = pulled(site)
    assert rows["index_time"].tolist()[0] == pd.Timestamp("2022-03-01 09:00")  # 10:00 in Berlin


def test_the_report_says_that_omop_has_no_recording_times(site: SiteSettings) -> None:
    _, report = pulled(site)
    assert any(note.startswith("Observation: 8 of 8 have no recording time") for note in report.notes), report.notes
    assert "CANARY" not in repr(report)
