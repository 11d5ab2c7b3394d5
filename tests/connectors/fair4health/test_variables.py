"""Variables as features and label: every form that feature sets of the platform have, translated or refused."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.connectors.fair4health.documents import Block
from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.connectors.fair4health.variables import Variables, is_of_stays, study_name_of
from spinney.study.settings import Feature, Label
from tests.connectors.fair4health.made import AGE, CODED, COUNT, GENDER, QUANTITY, READMITTED, outcome, variable

GROUPED = "aggr:groupBy(Observation.subject.reference, max(Observation.valueQuantity.value))"


def block(of: dict[str, Any]) -> Block:
    return Block([*of.items()], (5, {"name": 6}))


def feature(of: dict[str, Any], notes: Notes | None = None, told: tuple[float, float] | None = None) -> Feature:
    ranges = {(of["fhir_query"], of["fhir_path"]): told} if told else {}
    return Feature.model_validate({"name": "x", **Variables(notes or Notes(), ranges).feature(block(of))})


def label(of: dict[str, Any], notes: Notes | None = None) -> Label:
    return Label.model_validate({"name": "y", "source": Variables(notes or Notes(), {}).label(block(of))})


@pytest.mark.parametrize(
    ("of", "kind", "source"),
    [
        (GENDER, "categorical", {"patient": "sex"}),
        (AGE, "continuous", {"patient": "age"}),
        (
            variable("/Condition?code:sw=I50", "value:exists"),
            "binary",
            {"kind": "Condition", "codes": ("*|I50*",), "statistic": "exists"},
        ),
        (
            variable("/Observation?code=1001&value-concept=true", "value:exists()"),
            "binary",
            {"codes": ("*|1001",), "answers": ("true",), "statistic": "exists"},
        ),
        (variable("/Condition", "aggr:exists:Condition.subject.reference"), "binary", {"statistic": "exists"}),
        (variable("/MedicationStatement", COUNT), "continuous", {"kind": "MedicationStatement", "statistic": "count"}),
        (variable("/Observation?code=25000", QUANTITY), "continuous", {"codes": ("*|25000",), "statistic": "last"}),
        (variable("/Observation?status=final", GROUPED), "continuous", {"statuses": ("final",), "statistic": "max"}),
        (
            variable("/Encounter", "value:hospitalization:12"),
            "continuous",
            {"classes": ("IMP",), "statistic": "count", "window": "365d"},
        ),
    ],
)
def test_a_variable_becomes_a_feature(of: dict[str, Any], kind: str, source: dict[str, object]) -> None:
    found = feature(of)
    assert found.kind == kind
    assert {key: getattr(found.source, key) for key in source} == source


@pytest.mark.parametrize(
    ("query", "path", "why"),
    [
        ("/Observation?code=1&value-quantity=gt5", "value:exists", "search parameter value-quantity"),
        ("/Encounter?date=ge2010", "value:Encounter.type.coding.code", "Encounter.type.coding.code: of encounters"),
        ("/Patient", "value:Patient.name.text", "Patient.name.text: of a patient, a study knows age and sex"),
        ("/Patient?gender=male", "value:Patient.gender", "a query on Patient with conditions"),
        ("/FamilyMemberHistory", "value:exists", "resource type FamilyMemberHistory"),
        ("/Condition", "aggr:groupBy(Condition.code, count())", "an aggregation other than"),
        ("/Condition", COUNT.replace("count()", "max(Condition.code)"), "of something that is no quantity"),
        ("/Observation?code=59261-8", CODED, "a categorical feature needs its categories"),
        ("/Observation?code=2339-0", "erroneous-path", "no statistic for the FHIRPath erroneous-path"),
        ("/Encounter", "value:hospitalization:0", "no statistic"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_its_reason(query: str, path: str, why: str) -> None:
    with pytest.raises(Untranslated) as refused:
        feature(variable(query, path))
    assert why in str(refused.value)


def test_a_range_is_what_agents_told_or_made_up_and_both_is_said() -> None:
    notes = Notes()
    assert feature(variable("/MedicationStatement", COUNT, "Drugs"), notes, (0, 7)).range == (0, 7)
    assert feature(variable("/Observation?code=9", QUANTITY, "Steps"), notes).range == (0, 1000)
    assert "line 6: drugs: range [0, 7] is what agents told, with 0" in notes.assumed
    assert any(
        one.startswith("line 6: steps: range [0, 1000] is made up, and there is no unit") for one in notes.assumed
    )


def test_a_readmission_is_an_unplanned_encounter_within_so_many_days() -> None:
    notes = Notes()
    source = label(READMITTED, notes).source
    assert source is not None
    assert source.events is not None
    assert (source.outcome, source.horizon, source.events.codes) == ("event", "30d", ("*|unplanned",))
    assert any("unplanned" in one for one in notes.assumed)
    assert is_of_stays(block(READMITTED))
    assert not is_of_stays(block(AGE))


def test_a_label_that_exists_gets_a_horizon_and_the_list_says_that_it_is_made_up() -> None:
    notes = Notes()
    source = label(outcome("/Observation?code=9999&value-concept=true", "value:exists", "Back again"), notes).source
    assert source is not None
    assert source.events is not None
    assert (source.events.codes, source.events.answers, source.horizon) == (("*|9999",), ("true",), "365d")
    assert any(one.startswith("line 6: back_again: FAIR4Health has no horizon") for one in notes.assumed)


@pytest.mark.parametrize("path", [QUANTITY, "value:readmission:", "value:readmission:-3", "value:readmission:30000"])
def test_a_label_that_is_no_yes_or_no_is_refused(path: str) -> None:
    with pytest.raises(Untranslated, match="a label is a readmission or something that exists"):
        label(outcome("/Observation?code=9", path))


@pytest.mark.parametrize(
    ("words", "name"),
    [("Heart failure", "heart_failure"), ("30-day risk", "x_30-day_risk"), ("number of  visits", "number_of_visits")],
)
def test_names_are_made_for_columns(words: str, name: str) -> None:
    assert study_name_of(words) == name


@pytest.mark.parametrize("words", ["", "...", "ü" * 99, "a" * 63 + "_b", "-" * 99, "_a._"])
def test_any_words_make_a_name_that_a_study_takes(words: str) -> None:
    Label.model_validate({"name": study_name_of(words)})
