"""Many splits as one: means of numbers, the commonest of words, and a verdict beside them."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.choice.evidence import evidence_of
from spinney.trial.repeats import repeats
from spinney.trial.summary import evidence_over, mean_of, verdicts_of
from tests.spinney.in_process import SITES, cohorts, study


@pytest.fixture(scope="module")
def run():
    return list(repeats(study(), cohorts, lambda done: done < 3))


def test_numbers_are_means_and_what_was_never_known_stays_unknown(run):
    told, every = evidence_over(run)["ash"], [evidence_of(one.outcomes["ash"]) for one in run]
    assert told["rows"] == every[0]["rows"]
    assert told["auroc"]["fedrf"] == pytest.approx(np.mean([one["auroc"]["fedrf"] for one in every]))
    assert told["succession"] is None
    assert sum(told["choices"].values()) == told["splits"] == 3


def test_every_site_has_a_verdict_on_all_its_patients(run):
    verdicts = verdicts_of(run)
    assert set(verdicts) == {*SITES}
    by_split = [one.outcomes["elm"].gain["auroc"].value for one in run]
    assert verdicts["elm"].gain.value == pytest.approx(np.mean(by_split))
    assert evidence_over(run)["elm"]["verdict"]["word"] == verdicts["elm"].word


def test_the_mean_of_plain_data():
    assert mean_of([{"a": 1.0, "b": None}, {"a": 2.0, "b": None}]) == {"a": 1.5, "b": None}
    assert mean_of([{"a": 1.0}, {"a": None}, {"b": 3}]) == {"a": 1.0, "b": 3}
    assert mean_of([3, 4, 4]) == 4
    assert mean_of([True, False, True]) is True
    assert mean_of(["x", "y", "y"]) == "y"
    assert mean_of([["few"], [], ["few", "more"]]) == ["few", "more"]
    assert mean_of([[0.5, 1.0], [1.5, 2.0]]) == [1.0, 1.5]
    assert mean_of([None, None]) is None
