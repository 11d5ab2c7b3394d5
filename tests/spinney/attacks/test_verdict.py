"""How an attack's success is told."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from spinney.attacks.verdict import judge


def test_the_figures_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    member = rng.random((3, 500)) < 0.4
    score = np.round(rng.normal(size=(3, 500)) + member, 1)  # with ties
    found = judge(member, score)
    alarms, hits, _ = roc_curve(member.ravel(), score.ravel(), drop_intermediate=False)
    assert found.auc.value == pytest.approx(roc_auc_score(member.ravel(), score.ravel()))
    assert found.found.value == pytest.approx(np.interp(0.01, alarms, hits))


def test_who_guesses_is_told_to_guess() -> None:
    rng = np.random.default_rng(1)
    found = judge(rng.random((4, 300)) < 0.5, rng.normal(size=(4, 300)))
    assert found.auc.low < 0.5 < found.auc.high
    assert found.advantage.low < 0 < found.advantage.high


def test_attempts_on_the_same_patients_are_not_counted_as_more_patients() -> None:
    rng = np.random.default_rng(2)
    member, score = rng.random((1, 100)) < 0.5, rng.normal(size=(1, 100))
    once, often = judge(member, score), judge(np.tile(member, (9, 1)), np.tile(score, (9, 1)))
    assert once.auc.high - once.auc.low == pytest.approx(often.auc.high - often.auc.low, abs=0.02)
