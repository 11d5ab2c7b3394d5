"""FAIR4Health feature sets: every form that the platform's own feature sets have, translated or listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spinney.configuration.study_file import read_study, write_study
from spinney.connectors.fair4health import Imported, import_feature_set
from spinney.errors import StudyInvalid

READMITTED = {"name": "Readmitted", "fhir_query": "/Encounter", "fhir_path": "value:readmission:30"}
GENDER = {"name": "Gender", "fhir_query": "/Patient", "fhir_path": "value:Patient.gender"}


def variable(query: str, path: str, name: str = "X", data_type: str = "numeric") -> dict[str, Any]:
    return {"name": name, "fhir_query": query, "fhir_path": path, "variable_data_type": data_type}


def imported(folder: Path, *variables: dict[str, Any], label: dict[str, Any] = READMITTED, **around: Any) -> Imported:
    feature_set = {"name": "Use case 2", "variables": [*variables, {**label, "variable_type": "dependent"}]}
    file = folder / "featureset.json"
    file.write_text(json.dumps({"featureset": feature_set, **around} if around else feature_set))
    return import_feature_set(file)


COUNT = "aggr:groupBy(MedicationStatement.subject.reference,count())"
QUANTITY = "value:Observation.valueQuantity.value"


@pytest.mark.parametrize(
    ("query", "path", "kind", "source"),
    [
        ("/Patient", "value:Patient.gender", "categorical", {"patient": "sex"}),
        ("/Patient", "value:Patient.birthDate.getPeriod($this, now(), 'years')", "continuous", {"patient": "age"}),
        (
            "/Condition?code=I50&subject=patient1",
            "value:exists",
            "binary",
            {"kind": "Condition", "codes": ("http://hl7.org/fhir/sid/icd-10|I50",), "statistic": "exists"},
        ),
        (
            "/MedicationStatement?code=A10BA02",
            "value:exists",
            "binary",
            {"codes": ("http://www.whocc.no/atc|A10BA02",), "statistic": "exists"},
        ),
        ("/MedicationStatement", COUNT, "continuous", {"kind": "MedicationStatement", "statistic": "count"}),
        (
            "/Observation?code=http://loinc.org|4548-4,17856-6",
            QUANTITY,
            "continuous",
            {"codes": ("http://loinc.org|4548-4", "http://loinc.org|17856-6"), "statistic": "last"},
        ),
        (
            "/Observation?code=2339-0&status=final",
            "aggr:groupBy(Observation.subject.reference, max(Observation.valueQuantity.value))",
            "continuous",
            {"statuses": ("final",), "statistic": "max"},
        ),
        (
            "/Encounter",
            "value:hospitalization:12",
            "continuous",
            {"classes": ("IMP",), "statistic": "count", "window": "365d"},
        ),
    ],
)
def test_a_variable_becomes_a_feature(
    tmp_path: Path, query: str, path: str, kind: str, source: dict[str, object]
) -> None:
    result = imported(tmp_path, variable(query, path))
    feature = result.study.features[0]
    assert (feature.name, feature.kind) == ("x", kind)
    assert {key: getattr(feature.source, key) for key in source} == source
    assert result.left_out == ()


@pytest.mark.parametrize(
    ("query", "path", "why"),
    [
        ("/Condition?code:sw=N18", "value:exists", "code:sw=N18 stands for many codes"),
        ("/Observation?code=25000", QUANTITY, "code 25000 has no system"),
        ("/Observation?code=1001-1&value-concept=true", "value:exists", "search parameter value-concept"),
        ("/Encounter?date=ge2010", "value:Encounter.type.coding.code", "search parameter date"),
        ("/Patient", "value:Patient.name.text", "of a patient, a study knows age and sex"),
        ("/Patient?gender=male", "value:Patient.gender", "a query on Patient with conditions"),
        ("/FamilyMemberHistory", "value:exists", "resource type FamilyMemberHistory"),
        ("/Condition", "aggr:exists:Condition.subject.reference", "an aggregation other than"),
        ("/Observation?code=2339-0", "erroneous-path", "no statistic for the FHIRPath erroneous-path"),
    ],
)
def test_what_has_no_counterpart_is_listed_with_its_reason(tmp_path: Path, query: str, path: str, why: str) -> None:
    result = imported(tmp_path, GENDER, variable(query, path, name="Odd one"))
    assert [feature.name for feature in result.study.features] == ["gender"]
    assert len(result.left_out) == 1
    assert result.left_out[0].startswith(f"odd_one: {why}")


def test_categories_are_not_in_a_feature_set_so_a_coded_value_is_listed(tmp_path: Path) -> None:
    coded = variable(
        "/Observation?code=59261-8",
        "value:Observation.valueCodeableConcept.coding.code",
        name="HbA1c",
        data_type="categorical",
    )
    result = imported(tmp_path, GENDER, coded)
    assert result.left_out == ("hba1c: a categorical feature needs its categories, and the file does not name them",)
    assert not any("hba1c" in line for line in result.assumed)


def test_a_readmission_is_the_next_index_event_within_so_many_days(tmp_path: Path) -> None:
    label = imported(tmp_path, GENDER).study.label
    assert label.name == "readmitted"
    assert label.source is not None
    assert (label.source.outcome, label.source.horizon) == ("index-event", "30d")


def test_a_label_that_exists_gets_a_horizon_and_the_list_says_that_it_is_made_up(tmp_path: Path) -> None:
    result = imported(tmp_path, GENDER, label=variable("/Condition?code=I10", "value:exists", name="Hypertension"))
    source = result.study.label.source
    assert source is not None
    assert source.events is not None
    assert source.events.codes == ("http://hl7.org/fhir/sid/icd-10|I10",)
    assert any(line.startswith("hypertension: FAIR4Health has no horizon") for line in result.assumed)


def test_eligibility_of_stays_becomes_the_index_event_and_the_rest_is_listed(tmp_path: Path) -> None:
    criteria = [
        {"fhir_query": "/Patient"},
        {"fhir_query": "/Encounter?class=http://terminology.hl7.org/CodeSystem/v3-ActCode|EMER"},
        {"fhir_query": "/Condition?code:sw=J44"},
    ]
    result = imported(tmp_path, GENDER, eligibility_criteria=criteria)
    assert result.study.cohort is not None
    assert result.study.cohort.index.classes == ("EMER",)
    assert result.left_out == ("eligibility /Condition?code:sw=J44: a study has no such rule",)


def test_the_feature_set_is_found_inside_a_dataset_or_a_model(tmp_path: Path) -> None:
    assert imported(tmp_path, GENDER, dataset_id="d1", submitted_by="somebody").study.name == "use_case_2"


def test_variables_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    twice = [variable("/Condition?code=I50", "value:exists", name=name) for name in ("Heart failure", "heart-failure!")]
    names = [feature.name for feature in imported(tmp_path, *twice, {**GENDER, "name": "Readmitted"}).study.features]
    assert names == ["heart_failure", "heart-failure", "readmitted_2"]


def test_what_is_written_is_a_valid_study_with_the_lists_as_comments(tmp_path: Path) -> None:
    result = imported(tmp_path, GENDER, variable("/Observation?code=4548-4", QUANTITY, name="HbA1c"))
    write_study(result.study, tmp_path / "study.yaml", result.assumed)
    assert read_study(tmp_path / "study.yaml") == result.study
    assert "# hba1c: code 4548-4 is of http://loinc.org, by its form" in (tmp_path / "study.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "no FAIR4Health feature set"),
        ('{"variables": []}', "no FAIR4Health feature set"),
        (json.dumps({"variables": [GENDER]}), "has no feature or no dependent variable"),
    ],
)
def test_a_file_that_is_no_feature_set_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(StudyInvalid, match=said):
        import_feature_set(file)


def test_a_file_that_is_not_there_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="cannot be read"):
        import_feature_set(tmp_path / "nowhere.json")
