"""What people read who approve a study again: every setting that differs, and nothing else."""

from __future__ import annotations

import pytest

from spinney.configuration.study_changes import study_changes
from spinney.study.study import Study

FEATURES = [
    {"name": "age", "kind": "continuous", "range": [0, 120]},
    {"name": "smoker", "kind": "binary"},
]


def plain(**changes) -> dict:
    words = {"name": "wood", "features": FEATURES, "label": {"name": "died"}, **changes}
    return Study.model_validate(words).model_dump(mode="json")


def test_the_same_study_has_no_changes():
    assert study_changes(plain(), plain()) == []


def test_a_setting_is_named_with_what_it_was_and_what_it_is():
    assert study_changes(plain(), plain(privacy={"smallest_leaf": 3})) == ["privacy.smallest_leaf: 5 -> 3"]


def test_a_feature_goes_by_its_name_and_its_place_does_not_matter():
    assert study_changes(plain(), plain(features=FEATURES[::-1])) == []
    other = [FEATURES[0] | {"range": [18, 120]}, FEATURES[1]]
    assert study_changes(plain(), plain(features=other)) == ["features.age.range: [0.0, 120.0] -> [18.0, 120.0]"]


def test_what_is_gone_and_what_is_new_is_said_setting_by_setting():
    lines = study_changes(plain(), plain(features=[FEATURES[0], {"name": "diabetes", "kind": "binary"}]))
    assert 'features.smoker.kind: "binary" is gone' in lines
    assert 'features.diabetes.kind: "binary" is new' in lines
    assert all(line.startswith(("features.smoker.", "features.diabetes.")) for line in lines)


@pytest.mark.parametrize("section", ["forest", "privacy", "split", "choice", "schedule"])
def test_no_setting_changes_unseen(section: str):
    before = plain()
    for name in before[section]:
        (line,) = study_changes(before, {**before, section: {**before[section], name: "other"}})[-1:]
        assert line.startswith(f"{section}.{name}")
        assert '"other"' in line
