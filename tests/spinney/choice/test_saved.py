"""A saved model opens as what it was, or not at all."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from spinney.choice.model import FederatedForest
from spinney.choice.saved import ModelDescription, ModelRefused, read_words, restore, save
from spinney.errors import TreeRefused
from tests.spinney.in_process import Wood, cohorts, study


@pytest.fixture(scope="module")
def model() -> FederatedForest:
    federation = Wood(study(), cohorts(study()))
    federation.run()
    return federation.outcomes["ash"].model


@pytest.fixture(scope="module")
def saved(model: FederatedForest) -> tuple[ModelDescription, bytes]:
    return save(model, study().privacy.probability_precision)


def test_what_opens_gives_the_answers_of_what_was_saved(model: FederatedForest, saved: tuple[ModelDescription, bytes]):
    again = restore(read_words(saved[0].model_dump_json().encode()), saved[1])
    rows = pd.DataFrame(np.random.default_rng(1).random((50, 4)), columns=model.feature_names_in_)
    assert again.digest == model.digest
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": 0.99},
        {"calibration": [2.0, 1.0]},
        {"owners": "turned"},
        {"weights": "turned"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_word_that_was_changed_is_noticed(saved: tuple[ModelDescription, bytes], change: dict):
    plain = saved[0].model_dump(mode="json")
    name, value = next(iter(change.items()))
    turned = [*plain[name][1:], plain[name][0] + plain[name][0]] if value == "turned" else value
    with pytest.raises(ModelRefused, match="its digest is another"):
        restore(read_words(json.dumps({**plain, name: turned}).encode()), saved[1])


def test_trees_are_checked_as_if_another_house_had_sent_them(saved: tuple[ModelDescription, bytes]):
    with pytest.raises(TreeRefused):
        restore(saved[0], saved[1][:-3])


def test_another_number_of_trees_than_described_is_refused(saved: tuple[ModelDescription, bytes]):
    words = saved[0].model_copy(update={"owners": saved[0].owners[1:], "weights": saved[0].weights[1:]})
    with pytest.raises(ModelRefused, match="trees are described and"):
        restore(words, saved[1])


@pytest.mark.parametrize(
    ("change", "place"),
    [({"weights": []}, "no saved model"), ({"threshold": "high"}, "threshold"), ({"more": 1}, "more")],
)
def test_words_that_are_no_model_s_are_refused_by_their_place_and_not_quoted(
    saved: tuple[ModelDescription, bytes], change: dict, place: str
):
    text = json.dumps({**saved[0].model_dump(mode="json"), **change}).encode()
    with pytest.raises(ModelRefused, match=place) as refusal:
        read_words(text)
    assert "high" not in str(refusal.value)


def test_what_is_not_json_is_no_model():
    with pytest.raises(ModelRefused, match="not JSON"):
        read_words(b"\x80\x04 a pickle, perhaps")
