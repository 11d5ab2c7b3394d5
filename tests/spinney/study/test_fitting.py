"""Whether a clinical definition fits the features and the label of its study."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from spinney.study.study import Study
from tests.spinney.study.definitions import study, weight


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"features": [weight(value="text")]}, "a continuous feature can't be the last text"),
        ({"features": [study()["features"][0] | {"source": None}]}, "feature age needs a source"),
        ({"features": [study()["features"][0] | {"source": {"patient": "sex"}}]}, "sex is categorical"),
        ({"label": {"name": "dead"}}, "label dead needs a source"),
        (
            {"cohort": {"index": {"kind": "Encounter"}, "eligible": {"values": ["age"]}}},
            "age is no feature from events",
        ),
        (
            {
                "cohort": {
                    "index": {"kind": "Encounter"},
                    "quality": {"rules": [{"name": "r", "column": "weight", "comparison": "<", "than": "hight"}]},
                }
            },
            "quality: hight is no feature",
        ),
    ],
)
def test_what_does_not_fit_is_said_with_what_to_write(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        Study.model_validate(study(**changes))
    assert says in str(invalid.value)


def test_every_mistake_is_said_at_once() -> None:
    features = [study()["features"][0] | {"source": None}, weight(value="text")]
    with pytest.raises(ValidationError) as invalid:
        Study.model_validate(study(features=features, label={"name": "dead"}))
    assert [word in str(invalid.value) for word in ("label dead", "feature age", "last text")] == [True] * 3


def test_a_finished_table_needs_no_source() -> None:
    bare = [{"name": "age", "kind": "continuous", "range": [0, 120]}]
    assert Study.model_validate(study(features=bare, label={"name": "dead"}, cohort=None)).cohort is None
