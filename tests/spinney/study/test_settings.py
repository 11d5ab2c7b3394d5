"""The parts of a study that no algorithm owns: combinations that can't be meant are refused with what to write."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spinney.study.settings import Choice, Feature, ForestSettings, Privacy, Schedule, Split

AGE = {"name": "age", "kind": "continuous", "range": [0, 120]}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"name": "age", "kind": "continuous"}, r"needs a range, for example \[0, 300\]"),
        ({"name": "nyha", "kind": "categorical"}, r"needs categories, for example \[mild, severe\]"),
        ({"name": "smoker", "kind": "binary", "range": [0, 1]}, "belong to continuous features; smoker is binary"),
        ({**AGE, "categories": ["old"]}, "belong to categorical features; age is continuous"),
        ({**AGE, "range": [120, 0]}, r"must rise from its first to its second number, got \[120, 0\]"),
        ({"name": "smoker", "kind": "binary", "most_cuts": 3}, "most_cuts belong to continuous features"),
        ({"name": "nyha", "kind": "categorical", "categories": ["I", "I"]}, "must differ"),
    ],
)
def test_a_feature_has_what_its_kind_needs_and_nothing_else(words: dict, says: str):
    with pytest.raises(ValidationError, match=says):
        Feature.model_validate(words)


@pytest.mark.parametrize("mode", ["masked", "ring"])
def test_a_secure_sum_of_two_is_refused(mode: str):
    with pytest.raises(ValidationError, match=f"{mode} needs fewest_scoring_sites of at least 3"):
        Privacy(secure_sum=mode, fewest_scoring_sites=2)


@pytest.mark.parametrize(
    ("words", "floor"),
    [
        ({}, 3),
        ({"secure_sum": "trusted-third-party"}, 2),
        ({"secure_sum": "trusted-third-party", "fewest_scoring_sites": 4}, 4),
    ],
)
def test_how_many_have_to_score_follows_from_the_sum_unless_it_is_said(words: dict, floor: int):
    assert Privacy(**words).fewest_scorers == floor


def test_whoever_sees_counts_is_named_before_anybody_signs():
    assert Privacy().warning == ""
    assert "the coordinator sees every site's counts" in Privacy(secure_sum="trusted-third-party").warning
    assert "two neighbours in the ring who collude" in Privacy(secure_sum="ring").warning


def test_a_study_whose_forests_no_house_could_hold_is_refused_with_what_to_write():
    with pytest.raises(ValidationError, match=r"allow 16,382,000 nodes from each site.*lower max_leaves to 2500"):
        ForestSettings(trees=2000)
    assert ForestSettings(trees=2000, max_leaves=2500).most_nodes <= 10_000_000


def test_somebody_is_left_to_train_on():
    Split(test=0.5, validation=0.4)
    with pytest.raises(ValidationError, match="less than a tenth of the patients for training"):
        Split(test=0.5, validation=0.4, newest=0.2)


@pytest.mark.parametrize("words", [{"folds": 1}, {"bootstrap": 10}, {"sensitivity": 1.0}, {"metric": "accuracy"}])
def test_a_choice_that_can_t_be_made_is_refused(words: dict):
    with pytest.raises(ValidationError):
        Choice(**words)


@pytest.mark.parametrize("cron", ["nightly", "0 2 * *", "0 2 * * * *"])
def test_a_schedule_has_five_parts(cron: str):
    with pytest.raises(ValidationError):
        Schedule(cron=cron)


@pytest.mark.parametrize(
    ("largest", "sites", "cap"), [(None, 2, 0.75), (None, 3, 0.5), (None, 6, 0.25), (None, 1, 1), (0.4, 6, 0.4)]
)
def test_another_site_has_at_most_one_and_a_half_equal_shares_unless_it_is_said(largest, sites, cap):
    assert Privacy(largest_share=largest).share_cap(sites) == pytest.approx(cap)
