"""Figures over many splits: patients are drawn once for all splits, and the interval covers what it says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from spinney.choice.split_votes import SplitVotes, auroc_over_splits, gain_of, gain_over_splits


def splits(seed: int, patients: int = 300, number: int = 6, worth: float = 0.0) -> list[SplitVotes]:
    """Two models that see the same thing with other noise; `worth` is what the second one knows more."""
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=patients)
    y = (rng.random(patients) < 1 / (1 + np.exp(-risk))).astype(np.int8)
    a, b = risk + rng.normal(size=(2, patients))
    b = b + worth * (y - 0.5)
    found = []
    for _ in range(number):
        test = np.sort(rng.permutation(patients)[: patients // 4])
        found.append(SplitVotes(test.astype(np.int64), y[test], {"local": a[test], "chosen": b[test]}))
    return found


def test_the_value_is_the_mean_of_what_scikit_learn_says_of_every_split():
    some = splits(1)
    by_split = [roc_auc_score(one.y, one.votes["chosen"]) - roc_auc_score(one.y, one.votes["local"]) for one in some]
    assert gain_over_splits(some, "chosen", "local").value == pytest.approx(np.mean(by_split))
    assert [gain_of(one, "chosen", "local") for one in some] == pytest.approx(by_split)
    alone = [roc_auc_score(one.y, one.votes["local"]) for one in some]
    assert auroc_over_splits(some, "local").value == pytest.approx(np.mean(alone))


def test_the_interval_holds_no_gain_where_there_is_none_and_not_where_there_is_one():
    none = [gain_over_splits(splits(seed), "chosen", "local", seed) for seed in range(60)]
    held = np.mean([figure.low <= 0 <= figure.high for figure in none])
    assert 0.85 <= held <= 1.0  # the mean over few splits moves a little beside the mean over all
    assert gain_over_splits(splits(1, worth=1.5), "chosen", "local").low > 0


def test_many_splits_are_as_sure_as_all_patients_are_and_no_surer():
    def width(seed: int, number: int) -> float:
        figure = gain_over_splits(splits(seed, number=number), "chosen", "local")
        return figure.high - figure.low

    many = [width(seed, 40) for seed in range(12)]
    means = [gain_over_splits(splits(seed, number=40), "chosen", "local").value for seed in range(12, 60)]
    assert np.mean(many) == pytest.approx(3.92 * np.std(means), rel=0.35)  # what other patients would show
    assert np.mean(many) < 0.7 * np.mean([width(seed, 1) for seed in range(12)])  # four times as many are tested


def test_splits_without_both_classes_say_nothing():
    one = SplitVotes(np.arange(5), np.zeros(5, dtype=np.int8), {"chosen": np.arange(5.0), "local": np.arange(5.0)})
    assert gain_over_splits([one], "chosen", "local") is None
    some = splits(3)
    assert gain_over_splits([one, *some], "chosen", "local").value == gain_over_splits(some, "chosen", "local").value
