"""What is expected of a cohort: a rule for every word of the study, and none that a table can't be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from spinney.connectors.great_expectations.suite import Expected, expectations, prepared, quality_of
from tests.connectors.great_expectations.contract import GOOD, STUDY, first, table
from tests.made_up import plain_study


def rules(frame: pd.DataFrame) -> dict[str, Expected]:
    return {one.rule: one for one in expectations(frame, STUDY)}


def frame(**changed: list[Any]) -> pd.DataFrame:
    return prepared(table(**changed), STUDY)


def test_every_feature_has_a_rule_for_its_values_and_the_label_and_the_patients_have_theirs():
    expected = rules(frame())
    for feature in STUDY.features:
        assert any(rule.startswith(f"{feature.name} is ") for rule in expected)
    assert {"died is known", "no index event of a patient twice"} <= set(expected)


def test_a_few_values_out_of_range_are_a_warning_and_most_of_them_critical():
    expected = rules(frame())
    some, most = expected["age is between 0 and 120"], expected["at least half of age is between 0 and 120"]
    assert (some.severity, some.mostly) == ("warning", 1.0)
    assert (most.severity, most.mostly) == ("critical", 0.5)
    assert some.counted == most.counted


def test_rules_about_columns_that_a_site_does_not_have_are_left_out_and_one_says_so():
    without = rules(frame().drop(columns="pulse"))
    assert not any("pulse" in rule for rule in without)
    assert without["every feature is a column"].arguments["column_set"] == [one.name for one in STUDY.features]


def test_words_where_numbers_belong_are_not_compared():
    expected = rules(frame(pulse=["fast"] * 60))
    assert "pulse is a number" in expected
    assert not any(rule.startswith("pulse is between") for rule in expected)
    assert "pulse is not 80" not in expected


def test_the_label_is_prepared_as_the_encoder_reads_it():
    other = STUDY.with_settings(label={"positive": ["dead"]})
    made = prepared(table(died=first(["alive"] * 60, "dead", None)), other)
    assert made["died"].tolist()[:3] == [1.0, pytest.approx(np.nan, nan_ok=True), 0.0]


def test_categories_are_words_whatever_type_their_column_has():
    nyha = replace_feature("sex", categories=["1", "2"])
    made = prepared(table(sex=[1.0, 2.0] * 30), nyha)
    assert made["sex"].tolist()[:2] == ["1", "2"]


def replace_feature(name: str, **changes: Any):
    features = [one.model_copy(update=changes) if one.name == name else one for one in STUDY.features]
    return STUDY.model_copy(update={"features": tuple(features)})


def test_a_rule_between_columns_is_kept_broken_or_unknown_row_by_row():
    pressures = {
        "systolic": first(GOOD["systolic"], 120.0, 70.0, None),
        "diastolic": first(GOOD["diastolic"], 70.0, 80.0, 70.0),
    }
    column = frame(**pressures)["rule: diastolic below systolic"]
    assert column.tolist()[:2] == [1.0, 0.0]
    assert np.isnan(column[2])


def test_rules_that_count_the_same_are_counted_once():
    one = rules(frame())["age is between 0 and 120"]
    assert replace(one, rule="said otherwise", severity="critical", mostly=0.5).counted == one.counted
    assert replace(one, arguments={**one.arguments, "max_value": 90}).counted != one.counted


def test_a_study_of_finished_tables_has_the_default_rules():
    assert quality_of(plain_study()).rules == ()
