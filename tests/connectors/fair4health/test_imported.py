"""Documents become studies that can be checked, pulled and simulated; what is not in them is listed with its line."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.encoded import encode_table
from spinney.cohort.vault import Vault
from spinney.configuration.study_file import read_study, write_study
from spinney.connectors.fair4health.imported import Imported, import_document
from spinney.errors import StudyInvalid
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.connectors.fair4health.made import (
    AGE,
    CODED,
    DIABETES,
    DRUGS,
    GENDER,
    GOUT,
    READMITTED,
    STEPS,
    STROKE,
    agent,
    algorithm,
    data_set,
    feature_set,
    imported,
    line_with,
    mining_model,
    outcome,
    prediction,
    statistics,
    variable,
    written,
)
from tests.connectors.fair4health.patients import patients_for
from tests.made_up import pulled
from tests.places import ROOT

ILLNESS = feature_set(DIABETES, GOUT, STROKE, DRUGS)
PLAIN = feature_set(
    variable("/Patient", "value:Patient.name.text", "Language", "categorical"),
    GENDER,
    AGE,
    STEPS,
    variable("/Observation?code=1001&value-concept=true", "value:exists", "Drug changed"),
    variable("/Observation?code=59261-8", CODED, "HbA1c", "categorical"),
    outcome("/Observation?code=9999&value-concept=true", "value:exists", "Back again"),
)
STAYS = feature_set(GENDER, AGE, variable("/Encounter", "value:hospitalization:12", "Earlier stays"), DRUGS, READMITTED)
AGENTS = agent(statistics(DRUGS, 1, 6)), agent(statistics(DRUGS, 0, 9), status="discarded")
FOREST = algorithm(
    max_depth="4", num_trees="8", impurity="entropy", feature_subset_strategy="auto", max_parallelism="2"
)
LOGISTIC = algorithm("classification_logistic_regression", threshold="0.5")
TRAINED = {
    "boosted_models": [{"algorithm": LOGISTIC, "weak_models": [{"fitted_model": "UEsD"}], "test_statistics": []}]
}
MODEL = mining_model(data_set(ILLNESS, "/Condition?code:sw=E11,M10", agents=AGENTS), FOREST, test_size=0.3, **TRAINED)
SHAPES: dict[str, Any] = {
    "data preparation request": {"dataset_id": "d", **data_set(PLAIN, "/Patient?address-country=x"), "agent": {}},
    "data set with sources": data_set(ILLNESS, "/Condition?code:sw=E11,M10", agents=AGENTS),
    "data-mining model": MODEL,
    "model of another algorithm": mining_model(data_set(ILLNESS, "/Condition?code:sw=E11,M10"), LOGISTIC),
    "prospective study": {"data_mining_model": mining_model(data_set(PLAIN, "/Observation"), LOGISTIC)},
    "prediction request": {"data_mining_model": MODEL, **prediction()},
    "stays": data_set(STAYS, "/Encounter?class=IMP&date=ge2010"),
}


def sites(study: Study, folder: Path, people: int = 130) -> dict[str, Any]:
    """Three houses with made-up patients, as arrays."""
    found = {}
    for number, house in enumerate(("ash", "beech", "birch")):
        result = pulled(folder / house, study, patients_for(study, people, number))
        found[house] = encode_table(Vault(folder / house / "home"), result.cohort, study)
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_a_document_with_an_outcome_becomes_a_study_that_runs_on_made_up_patients(tmp_path: Path, shape: str) -> None:
    result = imported(tmp_path, SHAPES[shape])
    write_study(result.study, tmp_path / "study.yaml", [*result.assumed, *result.left_out])
    study = read_study(tmp_path / "study.yaml")
    assert study == result.study
    quick = study.with_settings(forest={"trees": 6}, choice={"repeats": 1, "bootstrap": 100})
    cohorts = sites(quick, tmp_path)
    assert all(0.1 < cohort.y.mean() < 0.9 for cohort in cohorts.values())
    done = simulate(quick, cohorts)
    assert done.left_out == {}
    assert done.outcomes.keys() == cohorts.keys()


def test_values_are_those_that_the_patients_resources_say(tmp_path: Path) -> None:
    study = imported(tmp_path, MODEL).study
    resources = patients_for(study, 60, 5)
    told = Vault(tmp_path / "home").read(pulled(tmp_path, study, resources).cohort).to_pandas()
    stays = {one["subject"]["reference"]: one["period"] for one in resources if one["resourceType"] == "Encounter"}
    history: dict[str, Counter[str]] = {who: Counter() for who in stays}
    for one in resources:
        who = one.get("subject", {}).get("reference")
        when = one.get("onsetDateTime") or one.get("effectiveDateTime")
        if when is not None:
            what = one.get("code") or one["medicationCodeableConcept"]
            kind = one["resourceType"] if one["resourceType"] != "Condition" else what["coding"][0]["code"][:3]
            history[who][kind if when < stays[who]["end"] else "later " + kind] += 1
    expected = [
        (
            min(seen["E11"], 1),
            min(seen["M10"], 1),
            seen["MedicationStatement"],
            int(bool(seen["later I63"])),
        )
        for seen in history.values()
        if seen["E11"] or seen["M10"]
    ]
    found = told[["diabetes", "gout", "number_of_drugs", "stroke"]].astype(float).astype(int)
    assert sorted(found.itertuples(index=False, name=None)) == sorted(expected)
    assert 30 < len(found) < 60
    assert (found.nunique() > 1).all()


def test_a_random_forests_settings_are_the_studys(tmp_path: Path) -> None:
    result = imported(tmp_path, MODEL)
    forest = result.study.forest
    assert (forest.trees, forest.max_depth, forest.criterion, forest.max_features) == (8, 4, "entropy", "sqrt")
    assert result.study.split.test == 0.3
    assert any("max_parallelism 2" in one for one in result.left_out)


@pytest.mark.parametrize(
    ("shape", "words", "why"),
    [
        ("data preparation request", '"Language"', "language: Patient.name.text: of a patient"),
        ("data preparation request", '"HbA1c"', "hba1c: a categorical feature needs its categories"),
        ("data preparation request", "address-country", "eligibility /Patient?address-country=x: of a patient"),
        ("data-mining model", "boosted_models", "boosted_models: models that were trained already"),
        ("prospective study", "logistic", "algorithm classification_logistic_regression (threshold 0.5): sites of a"),
    ],
)
def test_what_is_left_out_is_listed_with_the_line_in_which_it_stands(
    tmp_path: Path, shape: str, words: str, why: str
) -> None:
    left_out = imported(tmp_path, SHAPES[shape]).left_out
    assert any(one.startswith(f"line {line_with(tmp_path, words)}: {why}") for one in left_out)


def test_what_the_tutorial_shows_is_what_its_model_becomes(tmp_path: Path) -> None:
    coded = variable("/Observation?code=59261-8", CODED, "HbA1c", "categorical")
    data = data_set(
        feature_set(AGE, DIABETES, DRUGS, coded, STROKE),
        "/Condition?code:sw=E11,M10",
        agents=(agent(statistics(DRUGS, 0, 9)),),
    )
    forest = algorithm(num_trees="50", max_depth="8", max_parallelism="2")
    result = imported(tmp_path, mining_model(data, forest, test_size=0.3))
    said = [*(f"assumed: {one}" for one in result.assumed), *(f"left out: {one}" for one in result.left_out)]
    tutorial = (ROOT / "docs" / "tutorial-cohort.md").read_text(encoding="utf-8")
    shown = tutorial.partition("$ spinney study import-fair4health model.json -o study.yaml\n")[2].partition("```")[0]
    assert [*said, "study.yaml: 3 features, 2 left out; read it and correct it."] == shown.splitlines()


def test_of_patients_in_a_document_nothing_is_told(tmp_path: Path) -> None:
    request = {"data_mining_model": MODEL, **prediction()}
    asked = imported(tmp_path, request).left_out
    kept = imported(tmp_path, {"data_mining_model": MODEL, "predictions": [prediction()]}).left_out
    assert any("variables: a patient's values" in one for one in asked)
    assert any("predictions: predictions for patients" in one for one in kept)
    assert "female" not in " ".join([*asked, *kept])


@pytest.mark.parametrize("content", [feature_set(DIABETES, GOUT), data_set(feature_set(DIABETES, GOUT), "/Patient")])
def test_a_document_without_an_outcome_says_so_with_its_line(tmp_path: Path, content: dict[str, Any]) -> None:
    with pytest.raises(StudyInvalid) as refused:
        imported(tmp_path, content)
    (said,) = refused.value.mistakes
    assert f"line {line_with(tmp_path, 'variables')}: no dependent variable: 2 variables say" in said
    assert '"variable_type": "dependent"' in said


def test_an_outcome_that_cannot_be_translated_is_told_apart_from_none(tmp_path: Path) -> None:
    unknown = outcome("/FamilyMemberHistory", "value:exists", "Family")
    with pytest.raises(StudyInvalid) as refused:
        imported(tmp_path, feature_set(GENDER, unknown))
    first, second = refused.value.mistakes
    assert "the dependent variable family can't be translated" in first
    assert f"line {line_with(tmp_path, 'Family')}: family: resource type FamilyMemberHistory" in second


def test_a_document_without_any_feature_to_translate_says_which_are_missing(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="nothing to predict from") as refused:
        imported(tmp_path, feature_set(variable("/Patient", "value:Patient.name.text"), STROKE))
    assert "Patient.name.text" in refused.value.mistakes[1]


def test_a_second_outcome_and_a_second_feature_set_are_listed_and_not_made_features(tmp_path: Path) -> None:
    result = imported(tmp_path, [feature_set(GENDER, STROKE, READMITTED), ILLNESS])
    assert [one.name for one in result.study.features] == ["gender"]
    assert result.study.label.name == "stroke"
    assert any("readmitted: a second dependent variable" in one for one in result.left_out)
    assert any("another feature set; a study has one" in one for one in result.left_out)


def test_names_that_others_have_get_a_number_and_the_list_says_so(tmp_path: Path) -> None:
    twice = [{**GOUT, "name": name} for name in ("Heart failure", "heart  failure", "Stroke", "reason")]
    result = imported(tmp_path, feature_set(*twice, STROKE))
    assert [one.name for one in result.study.features] == ["heart_failure", "heart_failure_2", "stroke_2", "reason_2"]
    assert any("heart_failure_2: called so because there is a heart_failure already" in one for one in result.assumed)


@pytest.mark.parametrize("content", [[], {"variables": []}, {"variables": [{"name": "x"}]}, "variables"])
def test_a_file_without_a_feature_set_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(StudyInvalid, match="no FAIR4Health feature set"):
        imported(tmp_path, content)


def test_more_variables_than_a_study_takes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="5,001 variables; a study takes 5,000"):
        imported(tmp_path, feature_set(*[GOUT] * 5000, STROKE))


def broken(content: Any, chance: random.Random) -> Any:
    """The same with something of another type somewhere."""
    odd = [None, 3, "x", [], {}, True, -1.5, {"variables": [GENDER]}, "\x1b[2J", "a|b*|c,,"]
    if isinstance(content, dict) and content and chance.random() < 0.9:
        name = chance.choice([*content])
        return {**content, name: broken(content[name], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        place = chance.randrange(len(content))
        return [*content[:place], broken(content[place], chance), *content[place + 1 :]]
    return chance.choice(odd)


@pytest.mark.parametrize("seed", range(60))
def test_a_broken_document_becomes_a_study_or_is_refused_in_printable_words(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = SHAPES[chance.choice([*SHAPES])]
    for _ in range(chance.randint(1, 4)):
        content = broken(content, chance)
    file = written(tmp_path, content)
    try:
        result: Imported | None = import_document(file)
        words = [*result.assumed, *result.left_out]
    except StudyInvalid as refused:
        result, words = None, refused.mistakes
    assert all(one.isprintable() for one in words)
    if result is not None:
        write_study(result.study, tmp_path / "study.yaml", words)
        assert read_study(tmp_path / "study.yaml") == result.study
        assert json.dumps(result.study.model_dump(mode="json"))
