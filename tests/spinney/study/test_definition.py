"""The clinical definition: what may be written, and what is said about mistakes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from spinney.study.definition import EventFeature, LabelSource, PatientFeature, length
from spinney.study.study import Study
from tests.spinney.study.definitions import study, weight


def test_a_source_is_of_the_patient_or_of_events() -> None:
    features = Study.model_validate(study()).features
    assert isinstance(features[0].source, PatientFeature)
    assert isinstance(features[1].source, EventFeature)


def test_a_study_reads_back_from_what_it_writes_with_the_same_digest() -> None:
    one = Study.model_validate(study())
    assert Study.model_validate(one.model_dump(mode="json")).digest == one.digest


def test_the_definition_is_part_of_the_digest() -> None:
    other = study(cohort={"index": {"kind": "Encounter", "classes": ["IMP"]}})
    assert Study.model_validate(study()).digest != Study.model_validate(other).digest


@pytest.mark.parametrize(
    ("text", "span"),
    [("90min", timedelta(minutes=90)), ("8h", timedelta(hours=8)), ("30d", timedelta(30)), ("52w", timedelta(364))],
)
def test_a_duration_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert length(text) == span


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"features": [weight(window="30 days")]}, "no duration; write"),
        ({"features": [weight(codes=["4548-4"])]}, "write system|code"),
        ({"features": [weight(statistic="average")]}, "Input should be 'last'"),
        ({"features": [weight(value="text", statistic="mean")]}, "text has no mean"),
        ({"features": [weight(value="days", unit="kg")]}, "belong to value: number"),
        ({"features": [weight() | {"name": "patient"}]}, "patient is a column of every cohort"),
        ({"features": [weight(answers=["a"])]}, "last counts nothing; use exists or count"),
        ({"features": [weight(kind="Condition", statistic="exists", answers=["a"])]}, "belong to kind: Observation"),
        ({"label": {"name": "x", "source": {"outcome": "event", "horizon": "1d"}}}, "outcome: event needs `events`"),
    ],
)
def test_a_mistake_in_the_definition_says_what_to_write(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        Study.model_validate(study(**changes))
    assert says in str(invalid.value)


def test_an_outcome_other_than_an_event_has_no_events() -> None:
    with pytest.raises(ValidationError, match="the other outcomes have none"):
        LabelSource.model_validate({"outcome": "death", "horizon": "1d", "events": {"kind": "Condition"}})
