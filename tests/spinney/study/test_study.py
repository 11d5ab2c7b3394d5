"""What all sites sign has one name, and another name as soon as a word changes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from spinney.study.study import Study
from tests.spinney.study.definitions import study

WORDS = {"name": "s", "features": [{"name": "a", "kind": "binary"}], "label": {"name": "y"}}


def test_the_same_words_have_the_same_digest() -> None:
    assert Study.model_validate(WORDS).digest == Study.model_validate(WORDS).digest


def test_a_copy_with_another_setting_has_another_digest() -> None:
    study = Study.model_validate(WORDS)
    before = study.digest
    assert study.model_copy(update={"version": 2}).digest != before
    assert study.with_settings(split={"seed": 7}).digest != before


@pytest.mark.parametrize("name", ["patient", "Patient", "index_time", "ripe", "reason", "y", "Y"])
@pytest.mark.parametrize("what", ["feature", "label"])
def test_a_name_that_something_else_has_is_refused(name: str, what: str) -> None:
    feature, label = (name, "y") if what == "feature" else ("Y", name)
    words = {"name": "s", "features": [{"name": feature, "kind": "binary"}], "label": {"name": label}}
    if (feature.lower(), label.lower()) == ("y", "y"):
        with pytest.raises(ValidationError, match="used more than once"):
            Study.model_validate(words)
    else:
        with pytest.raises(
            ValidationError, match="is a column of every cohort; give the feature or label another name"
        ):
            Study.model_validate(words)


def test_names_that_differ_only_in_case_are_refused() -> None:
    features = [{"name": "Age", "kind": "binary"}, {"name": "age", "kind": "binary"}]
    with pytest.raises(ValidationError, match="used more than once as a feature or label: Age, age"):
        Study.model_validate({"name": "s", "features": features, "label": {"name": "y"}})


def test_whoever_only_reads_a_study_or_asks_in_a_round_does_not_wait_for_scikit_learn() -> None:
    heavy = {"sklearn", "scipy", "pandas"}
    code = f"import sys, spinney.study.study, spinney.house.rounds\nprint(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


OUTCOME = {"outcome": "event", "horizon": "8h", "events": {"kind": "Condition", "codes": ["a|2"]}}
CLINICAL = Study.model_validate(study(label={"name": "ill", "source": OUTCOME}))


def test_features_index_event_and_outcome_choose_events() -> None:
    assert [(by, one.kind, one.codes) for by, one in CLINICAL.choices] == [
        ("weight", "Observation", ("a|1",)),
        ("index event", "Encounter", ()),
        ("ill", "Condition", ("a|2",)),
    ]


def test_other_codes_change_nothing_else_in_a_study() -> None:
    other = CLINICAL.with_codes(lambda by, events: (f"b|{by}", *events.codes))
    assert [one.codes for _, one in other.choices] == [("b|weight", "a|1"), ("b|index event",), ("b|ill", "a|2")]
    assert other.with_codes(lambda _, events: events.codes[1:]) == CLINICAL
