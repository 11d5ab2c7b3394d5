"""An outcome as plain data: JSON without a number that is none, and nothing about one patient."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from spinney.choice.evidence import evidence_of, headline, plain
from spinney.choice.metrics import Figure
from spinney.choice.outcome import Newest, Outcome
from tests.spinney.in_process import Wood, cohorts, study


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    federation = Wood(study(), cohorts(study()))
    federation.run()
    return federation.outcomes["ash"]


def test_all_of_it_is_json(outcome: Outcome):
    told = evidence_of(outcome)
    assert json.loads(json.dumps(told, allow_nan=False)).keys() == told.keys()


def test_what_was_chosen_and_why_is_told_as_it_was_decided(outcome: Outcome):
    told = evidence_of(outcome)
    assert told["choice"]["model"] == outcome.decision.name
    assert told["choice"]["reason"] == outcome.decision.reason
    assert told["choice"]["threshold"] == outcome.decision.threshold
    assert told["model_digest"] == outcome.model.digest
    assert told["test"]["auroc"] == {name: getattr(outcome.figures["auroc"], name) for name in ("value", "low", "high")}


def test_no_list_is_as_long_as_the_cohort(outcome: Outcome):
    def longest(value: object) -> int:
        if isinstance(value, dict):
            return max(map(longest, value.values()), default=0)
        return max([len(value), *map(longest, value)], default=0) if isinstance(value, list) else 0

    assert longest(evidence_of(outcome)) < outcome.patients / 5


def test_a_figure_that_is_none_is_null(outcome: Outcome):
    unknown = replace(outcome, gain={"auroc": Figure(np.nan, -np.inf, np.inf)})
    assert evidence_of(unknown)["gain"]["auroc"] == {"value": None, "low": None, "high": None}


def test_the_headline_has_the_gain_over_local_and_the_newest_patients(outcome: Outcome):
    newest = replace(outcome, newest=Newest(0.1, {"auroc": Figure(0.7, 0.6, 0.8)}))
    told = headline(newest)
    assert told["test_auroc"] == outcome.figures["auroc"].value
    assert told["newest_auroc"] == 0.7
    assert told["gain_over_local"] == outcome.gain["auroc"].value
    assert "gain_over_champion" not in told


def test_numbers_of_numpy_become_plain_ones():
    said = plain({"a": np.float32(0.5), "b": (np.int64(3), True), "c": np.nan})
    assert said == {"a": 0.5, "b": [3, True], "c": None}
    assert [type(one) for one in (said["a"], said["b"][0])] == [float, int]
