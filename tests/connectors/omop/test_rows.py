"""What rows of the Common Data Model mean, in both of its versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spinney.connectors.sources import Wanted
from spinney.demo.omop import DISCHARGE
from tests.made_up_omop import LOINC, PARENT, SNOMED, diagnosis, measured, model, pull, stay

Database = Callable[..., str]


@pytest.fixture(params=["postgres", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    make: Database = request.getfixturevalue(request.param)
    return make


@pytest.fixture(params=["5.3", "5.4"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_day_is_never_midnight_and_a_time_is_a_time(database: Database, tmp_path: Path) -> None:
    url = database(
        *model(
            diagnosis(1),
            diagnosis(2, condition_start_datetime="2022-03-01 00:00:00"),
            diagnosis(3, condition_start_datetime="2022-03-01 09:30:00"),
        )
    )
    wanted = Wanted("Condition", ("omop|201826",))
    rows = sorted(pull(url, tmp_path, wanted)["Condition"], key=lambda row: row["event"])
    assert [row["time"].replace(" ", "T") for row in rows] == ["2022-03-01", "2022-03-01", "2022-03-01T09:30:00"]
    rows = sorted(pull(url, tmp_path, wanted, midnight="moment")["Condition"], key=lambda row: row["event"])
    assert [row["time"].replace(" ", "T") for row in rows][1] == "2022-03-01T00:00:00"


def test_a_measurement_has_a_number_a_unit_and_a_comparator(database: Database, tmp_path: Path) -> None:
    of_it = {"value_as_number": 5.5, "unit_concept_id": 8753, "unit_source_value": "mmol", "value_as_concept_id": 0}
    url = database(*model(measured(**of_it, operator_concept_id=4171756, visit_occurrence_id=7)))
    (row,) = pull(url, tmp_path, Wanted("Observation", (f"{LOINC}|2345-7",)))["Observation"]
    assert (float(row["value"]), row["unit"], row["comparator"]) == (5.5, "mmol/L", "<")
    assert (row["encounter"], row["status"], row["text"]) == ("visit_occurrence/7", "final", None)


def test_a_unit_without_a_concept_is_as_the_source_writes_it(sqlite: Database, tmp_path: Path) -> None:
    url = sqlite(*model(measured(value_as_number=99, unit_concept_id=0, unit_source_value="mg%")))
    (row,) = pull(url, tmp_path, Wanted("Observation", ("omop|3004501",)))["Observation"]
    assert row["unit"] == "mg%"


@pytest.mark.parametrize(
    ("code", "text"), [(f"{LOINC}|88020-3", f"{SNOMED}|420300004"), ("omop|3000001", "omop|4000001")]
)
def test_a_value_that_is_a_concept_is_called_as_its_code_is(
    sqlite: Database, tmp_path: Path, code: str, text: str
) -> None:
    row = {"observation_id": 1, "person_id": 1, "observation_concept_id": 3000001, "observation_date": "2022-03-01"}
    url = sqlite(*model(("observation", {**row, "value_as_concept_id": 4000001})))
    (found,) = pull(url, tmp_path, Wanted("Observation", (code,)))["Observation"]
    assert (found["text"], found["event"]) == (text, "observation/1")


def test_a_value_without_a_concept_is_the_words_of_the_source(sqlite: Database, tmp_path: Path) -> None:
    url = sqlite(*model(measured(value_source_value="positive", value_as_concept_id=0)))
    (row,) = pull(url, tmp_path, Wanted("Observation", ("omop|3004501",)))["Observation"]
    assert (row["text"], row["value"]) == ("positive", None)


def test_a_stay_has_class_status_and_where_its_patient_went(database: Database, tmp_path: Path, version: str) -> None:
    url = database(*model(stay(**{DISCHARGE[version]: 8536}), stay(2, visit_type_concept_id=32220), version=version))
    rows = pull(url, tmp_path, Wanted("Encounter", ("omop|9201",)))["Encounter"]
    first = [row for row in rows if row["event"] == "visit_occurrence/1"]
    discharges = {"omop|8536", "http://terminology.hl7.org/CodeSystem/discharge-disposition|home"}
    assert {row["discharge"] for row in first} == discharges
    assert {(row["class"], row["status"], row["until"]) for row in first} == {("IMP", "finished", "2022-03-05")}
    (second,) = [row for row in rows if row["event"] == "visit_occurrence/2"]
    assert (second["status"], second["until"]) == ("in-progress", None)  # its end is the day of the last load


def test_a_kind_of_visit_that_nobody_knows_keeps_its_number_unless_the_site_names_it(
    sqlite: Database, tmp_path: Path
) -> None:
    url = sqlite(*model(stay(visit_concept_id=42898160)))
    assert {row["class"] for row in pull(url, tmp_path, Wanted("Encounter"))["Encounter"]} == {"omop|42898160"}
    named = pull(url, tmp_path, Wanted("Encounter"), classes={42898160: "NONAC"})["Encounter"]
    assert {row["class"] for row in named} == {"NONAC"}


def test_parts_of_a_visit_lie_within_it_where_the_site_wants_them(
    sqlite: Database, tmp_path: Path, version: str
) -> None:
    part = {"visit_detail_concept_id": 9201, "person_id": 1, "visit_detail_start_date": "2022-03-02"}
    first = {**part, "visit_detail_id": 1, "visit_occurrence_id": 1}
    inner = {**part, "visit_detail_id": 2, "visit_occurrence_id": 1, PARENT[version]: 1}
    url = sqlite(*model(stay(), ("visit_detail", first), ("visit_detail", inner), version=version))
    assert len(pull(url, tmp_path, Wanted("Encounter", ("omop|9201",)))["Encounter"]) == 1
    rows = pull(url, tmp_path, Wanted("Encounter", ("omop|9201",)), visit_details=True)["Encounter"]
    assert {row["event"]: row["parent"] for row in rows} == {
        "visit_occurrence/1": None,
        "visit_detail/1": "visit_occurrence/1",
        "visit_detail/2": "visit_detail/1",
    }


def test_drugs_are_the_kind_that_the_study_asks_for(sqlite: Database, tmp_path: Path) -> None:
    drug = {"person_id": 1, "drug_concept_id": 1503297, "drug_exposure_start_date": "2022-03-01"}
    given = {**drug, "drug_exposure_id": 1, "drug_type_concept_id": 32818, "drug_exposure_end_date": "2022-03-03"}
    ordered = {**drug, "drug_exposure_id": 2, "drug_type_concept_id": 32838}
    url = sqlite(*model(("drug_exposure", given), ("drug_exposure", ordered)))
    kinds = ("MedicationRequest", "MedicationAdministration")
    asked = [Wanted(kind, ("http://www.nlm.nih.gov/research/umls/rxnorm|6809",)) for kind in kinds]
    everything = pull(url, tmp_path, *asked)
    assert [len(everything[kind]) for kind in kinds] == [2, 2]
    types = {"MedicationRequest": [32838], "MedicationAdministration": [32818]}
    told = pull(url, tmp_path, *asked, drug_types=types)
    assert [row["event"] for row in told["MedicationRequest"]] == ["drug_exposure/2"]
    assert [row["until"] for row in told["MedicationAdministration"]] == ["2022-03-03"]


def test_drug_eras_are_read_on_request(sqlite: Database, tmp_path: Path) -> None:
    era = {"drug_era_id": 1, "person_id": 1, "drug_concept_id": 1503297, "drug_era_start_date": "2022-03-01"}
    url = sqlite(*model(("drug_era", {**era, "drug_era_end_date": "2022-06-01"})))
    asked = Wanted("MedicationStatement", ("omop|1503297",))
    assert pull(url, tmp_path, asked)["MedicationStatement"] == []
    (row,) = pull(url, tmp_path, asked, eras=["MedicationStatement"])["MedicationStatement"]
    assert (row["event"], row["time"], row["until"]) == ("drug_era/1", "2022-03-01", "2022-06-01")


def test_an_observation_period_says_from_when_to_when_somebody_was_in_sight(database: Database, tmp_path: Path) -> None:
    days = {"observation_period_start_date": "2020-01-01", "observation_period_end_date": "2022-12-31"}
    seen = {"observation_period_id": 7, "person_id": 1, **days, "period_type_concept_id": 32827}
    (row,) = pull(database(*model(("observation_period", seen))), tmp_path, Wanted("Coverage"))["Coverage"]
    assert (row["event"], row["patient"], row["code"]) == ("observation_period/7", "1", "omop|32827")
    assert (row["time"], row["until"]) == ("2020-01-01", "2022-12-31")


def test_a_vaccination_is_a_drug_that_cvx_has_a_code_for(sqlite: Database, tmp_path: Path) -> None:
    drug = {"person_id": 1, "drug_exposure_start_date": "2022-03-01", "drug_concept_id": 1503297}
    flu = {**drug, "drug_exposure_id": 2, "drug_source_concept_id": 40213000}
    url = sqlite(*model(("drug_exposure", {**drug, "drug_exposure_id": 1}), ("drug_exposure", flu)))
    rows = pull(url, tmp_path, Wanted("Immunization"))["Immunization"]
    assert {row["event"] for row in rows} == {"drug_exposure/2"}
    assert "http://hl7.org/fhir/sid/cvx|140" in {row["code"] for row in rows}


def test_a_death_is_known_to_the_day_or_to_the_minute(database: Database, tmp_path: Path) -> None:
    url = database(*model(("death", {"person_id": 1, "death_date": "2023-05-01"})))
    (row,) = pull(url, tmp_path, Wanted("Patient"))["Patient"]
    assert row == {"patient": "1", "birth": "1950", "sex": "female", "died": "2023-05-01"}


def test_of_several_deaths_of_one_person_the_first_day_counts_and_its_time(database: Database, tmp_path: Path) -> None:
    rows = [
        ("death", {"person_id": 1, "death_date": "2022-05-07", "death_datetime": "2022-05-07 08:00:00"}),
        ("death", {"person_id": 1, "death_date": "2022-04-01"}),
        ("death", {"person_id": 1, "death_date": "2022-04-01", "death_datetime": "2022-04-01 09:30:00"}),
    ]
    (person,) = pull(database(*model(*rows)), tmp_path, Wanted("Patient"))["Patient"]
    assert person["died"].replace("T", " ") == "2022-04-01 09:30:00"


def test_patients_are_called_as_the_site_says(database: Database, tmp_path: Path) -> None:
    url = database(*model(diagnosis()))
    found = pull(url, tmp_path, Wanted("Patient"), Wanted("Condition", ("omop|201826",)), patient="person_source_value")
    assert found["Patient"][0]["patient"] == found["Condition"][0]["patient"] == "ann"
