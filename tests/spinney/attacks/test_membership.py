"""Whether a forest tells who was there: one that remembers does, one that could not know doesn't."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from spinney.attacks import membership
from spinney.forest.tree import Forest
from tests.spinney.attacks.exporters import collapsed, people, remembering


def forgetting(_: NDArray[np.float32], y: NDArray[np.int8], seed: int) -> Forest:
    """Grown on people who are made up, whoever is asked about."""
    others, labels = people(len(y), seed)
    return remembering(others, labels, seed)


def test_a_forest_that_remembers_is_read_and_one_with_large_leaves_hardly() -> None:
    X, y = people(200, 7)
    plain, large = (membership.grow_shadows(one, X, y, 24) for one in (remembering, collapsed))
    found, less = membership.attack(plain, 8), membership.attack(large, 8)
    assert found.auc.value > 0.85
    assert less.auc.high < found.auc.low
    assert less.found.value < found.found.value


def test_a_forest_that_never_saw_them_tells_nothing() -> None:
    X, y = people(200, 8)
    found = membership.attack(membership.grow_shadows(forgetting, X, y, 16), 8)
    assert found.auc.low < 0.5 < found.auc.high


def test_the_null_is_guessing_though_the_scores_are_the_same() -> None:
    X, y = people(150, 9)
    shadows = membership.grow_shadows(remembering, X, y, 16)
    null = membership.null(shadows, 16)
    assert null.auc.value == pytest.approx(0.5, abs=0.03)
    assert membership.attack(shadows, 8).auc.low > null.auc.high


def test_shadows_help_against_patients_who_are_believed_anyway() -> None:
    X, y = people(200, 10)
    shadows = membership.grow_shadows(remembering, X, y, 24, look="mean-vote")
    assert membership.attack(shadows, 8).auc.value > membership.by_threshold(shadows, 8).auc.value


@pytest.mark.parametrize("look", ["mean-vote", "every-tree"])
def test_evidence_is_the_log_odds_of_the_true_label(look: membership.Look) -> None:
    leaf = Forest(np.array([-1], np.int16), np.zeros(1), np.zeros(1, bool), np.array([0.8]))
    X = np.zeros((2, 1), np.float32)
    told = membership.evidence(leaf, X, np.array([1, 0], np.int8), look)
    assert told == pytest.approx([np.log(4), -np.log(4)])


def test_growing_ends_when_the_time_is_over() -> None:
    X, y = people(60, 11)
    assert len(membership.grow_shadows(remembering, X, y, 30, go_on=lambda: False)) == 4


def test_the_density_is_that_of_a_normal() -> None:
    from scipy.stats import norm

    inside = np.array([[True], [True], [True], [False], [False], [False]])
    shadows = membership.Shadows(inside, np.array([[1.0], [2.0], [3.0], [-1.0], [0.0], [1.0]]))
    spread = np.sqrt(2 / 3 + membership.TINY)
    wanted = norm(2, spread).logpdf(1.2) - norm(0, spread).logpdf(1.2)
    assert membership.likelihood_ratios(shadows, np.array([1.2]))[0] == pytest.approx(wanted)
