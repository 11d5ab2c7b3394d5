"""A made-up history as an OMOP Common Data Model, with a vocabulary of the concepts that occur in it.

The vocabulary's concept ids are made up, as OMOP reserves the numbers above two billion for; units, sexes and kinds of
visits have those that all the world uses. Times are local to the hospital. OMOP has no time of recording.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from sqlalchemy import URL, create_engine, make_url, text

from spinney.connectors.omop.records import SYSTEMS
from spinney.demo.history import MadeUpHistory
from spinney.demo.sql import fill, local_times
from spinney.demo.words import CONDITIONS, DRUGS, MEASURES, MONITOR_UNITS, NYHA, NYHA_CLASSES

VISITS = {"IMP": 9201, "EMER": 9203, "AMB": 9202, "OBSENC": 581385}
SEXES = {"male": 8507, "female": 8532}
UNITS = {
    "mm[Hg]": 8876,
    "/min": 8541,
    "%": 8554,
    "kg": 9529,
    "mg/dL": 8840,
    "mmol/L": 8753,
    "umol/L": 8749,
    "g/dL": 8713,
    "g/L": 8636,
    "pg/mL": 8845,
    "pmol/L": 8729,
}
FIRST_CONCEPT = 2_000_000_001
TABLES = {
    "cdm_source": "cdm_source_name VARCHAR(255), cdm_version VARCHAR(10)",
    "concept": "concept_id INTEGER PRIMARY KEY, concept_name VARCHAR(255), domain_id VARCHAR(20), "
    "vocabulary_id VARCHAR(20), concept_class_id VARCHAR(20), standard_concept VARCHAR(1), concept_code VARCHAR(50)",
    "concept_ancestor": "ancestor_concept_id INTEGER, descendant_concept_id INTEGER, "
    "min_levels_of_separation INTEGER, max_levels_of_separation INTEGER",
    "person": "person_id INTEGER PRIMARY KEY, gender_concept_id INTEGER, year_of_birth INTEGER, "
    "month_of_birth INTEGER, day_of_birth INTEGER, birth_datetime TIMESTAMP, person_source_value VARCHAR(50), "
    "gender_source_value VARCHAR(50)",
    "death": "person_id INTEGER, death_date DATE, death_datetime TIMESTAMP, cause_concept_id INTEGER",
    "observation_period": "observation_period_id INTEGER PRIMARY KEY, person_id INTEGER, "
    "observation_period_start_date DATE, observation_period_end_date DATE, period_type_concept_id INTEGER",
    "visit_occurrence": "visit_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER, visit_concept_id INTEGER, "
    "visit_start_date DATE, visit_start_datetime TIMESTAMP, visit_end_date DATE, visit_end_datetime TIMESTAMP, "
    "visit_type_concept_id INTEGER, visit_source_value VARCHAR(50), visit_source_concept_id INTEGER, "
    "{discharge} INTEGER",
    "condition_occurrence": "condition_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER, "
    "condition_concept_id INTEGER, condition_start_date DATE, condition_start_datetime TIMESTAMP, "
    "condition_end_date DATE, condition_end_datetime TIMESTAMP, visit_occurrence_id INTEGER, "
    "condition_source_value VARCHAR(50), condition_source_concept_id INTEGER",
    "drug_exposure": "drug_exposure_id INTEGER PRIMARY KEY, person_id INTEGER, drug_concept_id INTEGER, "
    "drug_exposure_start_date DATE, drug_exposure_start_datetime TIMESTAMP, drug_exposure_end_date DATE, "
    "drug_exposure_end_datetime TIMESTAMP, drug_type_concept_id INTEGER, visit_occurrence_id INTEGER, "
    "drug_source_value VARCHAR(50), drug_source_concept_id INTEGER",
    "measurement": "measurement_id INTEGER PRIMARY KEY, person_id INTEGER, measurement_concept_id INTEGER, "
    "measurement_date DATE, measurement_datetime TIMESTAMP, operator_concept_id INTEGER, value_as_number NUMERIC, "
    "value_as_concept_id INTEGER, unit_concept_id INTEGER, visit_occurrence_id INTEGER, "
    "measurement_source_value VARCHAR(50), measurement_source_concept_id INTEGER, unit_source_value VARCHAR(50), "
    "value_source_value VARCHAR(50)",
    "observation": "observation_id INTEGER PRIMARY KEY, person_id INTEGER, observation_concept_id INTEGER, "
    "observation_date DATE, observation_datetime TIMESTAMP, value_as_number NUMERIC, value_as_string VARCHAR(60), "
    "value_as_concept_id INTEGER, unit_concept_id INTEGER, visit_occurrence_id INTEGER, "
    "observation_source_value VARCHAR(50), observation_source_concept_id INTEGER, unit_source_value VARCHAR(50)",
    "procedure_occurrence": "procedure_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER, "
    "procedure_concept_id INTEGER, procedure_date DATE, procedure_datetime TIMESTAMP, visit_occurrence_id INTEGER, "
    "procedure_source_value VARCHAR(50), procedure_source_concept_id INTEGER",
}
DISCHARGE = {"5.3": "discharge_to_concept_id", "5.4": "discharged_to_concept_id"}


def write_omop(history: MadeUpHistory, url: URL | str, version: str = "5.4") -> None:
    """Write a history into a database; tables of these names are replaced."""
    engine = create_engine(make_url(url))
    try:
        with engine.begin() as connection:
            for table, columns in TABLES.items():
                connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
                connection.execute(text(f"CREATE TABLE {table} ({columns.format(discharge=DISCHARGE[version])})"))
        for table, rows in _tables(history, version).items():
            fill(engine, table, rows)
    finally:
        engine.dispose()


def concepts() -> pd.DataFrame:
    """The vocabulary: every code that a made-up hospital may write."""
    pairs = [*CONDITIONS.values(), *DRUGS.values()]
    codes = [known.code for known in MEASURES.values()]
    codes += [NYHA, *NYHA_CLASSES, *(code for pair in pairs for code in pair)]
    vocabularies = {uri: name for name, uri in SYSTEMS.items()}
    split = [code.partition("|") for code in dict.fromkeys(codes)]
    made_up = [(FIRST_CONCEPT + at, vocabularies[system], word) for at, (system, _, word) in enumerate(split)]
    units = [(concept, "UCUM", unit) for unit, concept in UNITS.items()]
    visits = [(581385, "Visit", "OMOP4822036"), (9201, "Visit", "IP"), (9203, "Visit", "ER"), (9202, "Visit", "OP")]
    sexes = [(8507, "Gender", "M"), (8532, "Gender", "F")]
    rows = pd.DataFrame([*made_up, *units, *visits, *sexes], columns=["concept_id", "vocabulary_id", "concept_code"])
    return rows.assign(concept_name=rows["concept_code"])


def _tables(history: MadeUpHistory, version: str) -> dict[str, pd.DataFrame]:
    zone, people, events = history.hospital.timezone, history.patients, history.events
    vocabulary = concepts()
    uris = vocabulary["vocabulary_id"].map(SYSTEMS)
    by_code = dict(zip(uris + "|" + vocabulary["concept_code"], vocabulary["concept_id"], strict=True))
    ours = history.hospital.habits.code_map(history.hospital.name)
    persons = dict(zip(people["patient"].astype(str), range(1, len(people) + 1), strict=True))

    def base(rows: pd.DataFrame, table: str, stem: str, start: str = "_start") -> dict[str, pd.Series | int]:
        """What all tables of events have."""
        return {
            f"{table}_id": rows["number"] + 1,
            "person_id": rows["patient"].astype(str).map(persons),
            **_dated(rows["time"], zone, f"{stem}{start}"),
        }

    def coded(rows: pd.DataFrame, stem: str) -> dict[str, pd.Series]:
        """The standard concept, and what the hospital wrote."""
        codes = rows["code"].astype(str)
        return {
            f"{stem}_concept_id": codes.map(lambda code: by_code[ours.get(code, code)]),
            f"{stem}_source_concept_id": codes.map(lambda code: by_code.get(code, 0)),
            f"{stem}_source_value": codes.str.partition("|")[2],
        }

    stays, orders, diagnoses, results = (
        events[kind] for kind in ("Encounter", "MedicationRequest", "Condition", "Observation")
    )
    words = results["text"].notna()
    numbers, answers = results[~words], results[words]
    units = numbers["unit"].map({theirs: ours for ours, theirs in MONITOR_UNITS.items()}).fillna(numbers["unit"])
    born = people["birth"]
    dead = people[people["died"].notna()]
    seen = stays.assign(day=stays["time"].dt.date).groupby("patient", observed=True)["day"]
    return {
        "cdm_source": pd.DataFrame({"cdm_source_name": ["a made-up hospital"], "cdm_version": [f"v{version}"]}),
        "concept": vocabulary,
        "concept_ancestor": pd.DataFrame(
            {
                "ancestor_concept_id": vocabulary["concept_id"],
                "descendant_concept_id": vocabulary["concept_id"],
                "min_levels_of_separation": 0,
                "max_levels_of_separation": 0,
            }
        ),
        "person": pd.DataFrame(
            {
                "person_id": people["patient"].astype(str).map(persons),
                "gender_concept_id": people["sex"].map(SEXES),
                "year_of_birth": born.dt.year,
                "month_of_birth": born.dt.month,
                "day_of_birth": born.dt.day,
                "person_source_value": people["patient"].astype(str),
                "gender_source_value": people["sex"],
            }
        ),
        "death": pd.DataFrame(
            {"person_id": dead["patient"].astype(str).map(persons), **_dated(dead["died"], zone, "death")}
        ),
        "observation_period": pd.DataFrame(
            {
                "observation_period_id": [persons[str(who)] for who in seen.groups],
                "person_id": [persons[str(who)] for who in seen.groups],
                "observation_period_start_date": seen.min().astype(str).to_numpy(),
                "observation_period_end_date": seen.max().astype(str).to_numpy(),
                "period_type_concept_id": 32827,  # encounters of a record system
            }
        ),
        "visit_occurrence": pd.DataFrame(
            {
                **base(stays, "visit_occurrence", "visit"),
                **_dated(stays["until"], zone, "visit_end"),
                "visit_concept_id": stays["class"].map(VISITS),
                "visit_source_value": stays["class"],
                DISCHARGE[version]: 0,
            }
        ),
        "condition_occurrence": pd.DataFrame(
            {**base(diagnoses, "condition_occurrence", "condition"), **coded(diagnoses, "condition")}
        ),
        "drug_exposure": pd.DataFrame(
            {
                **base(orders, "drug_exposure", "drug_exposure"),
                **_dated(orders["time"], zone, "drug_exposure_end"),
                **coded(orders, "drug"),
            }
        ),
        "measurement": pd.DataFrame(
            {
                **base(numbers, "measurement", "measurement", ""),
                **coded(numbers, "measurement"),
                "value_as_number": numbers["value"],
                "value_as_concept_id": 0,
                "unit_concept_id": units.map(UNITS).fillna(0).astype(int),
                "unit_source_value": numbers["unit"],
            }
        ),
        "observation": pd.DataFrame(
            {
                **base(answers, "observation", "observation", ""),
                **coded(answers, "observation"),
                "value_as_concept_id": answers["text"].map(by_code),
            }
        ),
    }


def _dated(times: pd.Series, zone: str, stem: str) -> Mapping[str, pd.Series]:
    """Both columns of a point in time."""
    local = local_times(times, zone)
    return {f"{stem}_date": local.str.slice(0, 10), f"{stem}_datetime": local}
