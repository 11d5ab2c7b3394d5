"""Was this patient among those who grew the forest? A likelihood-ratio attack with shadow forests.

The attacker knows a patient's record and label, and can grow forests on people like these. For every patient the
evidence for the true label is collected over shadow forests that were grown with the patient, and over those that were
grown without; the release belongs to the likelier of the two (Carlini et al. 2022, both sides, one normal each).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.verdict import AttackResult, Flags, Floats, judge
from spinney.forest.traverse import Walker
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix

Exporter = Callable[[Matrix, NDArray[np.int8], int], Forest]
"""Rows, labels and a seed give a release: the forest as it would leave."""
Look = Literal["mean-vote", "every-tree"]
CLIP = 0.02  # of one tree's probability: a leaf that is sure says no more than this
SURE = 1e-3  # of the mean vote
SHRINK = 0.5  # of a patient's spread towards that of all: few shadows tell it badly
TINY = 1e-6


@dataclass(frozen=True)
class Shadows:
    """Forests on random halves: who was in (forests x patients), and what each forest says for the true label."""

    inside: Flags
    evidence: Floats

    def __len__(self) -> int:
        return len(self.inside)


def evidence(forest: Forest, X: Matrix, y: NDArray[np.int8], look: Look = "every-tree") -> Floats:
    """Log odds of the true label: of the mean vote, or the mean over the trees of each tree's."""
    votes = Walker(forest, X.shape[1]).votes(X)
    votes = np.where(y[:, None] == 1, votes, 1 - votes)
    if look == "mean-vote":
        return _log_odds(np.clip(votes.mean(axis=1), SURE, 1 - SURE))
    return np.asarray(_log_odds(np.clip(votes, CLIP, 1 - CLIP)).mean(axis=1))


def grow_shadows(
    exporter: Exporter,
    X: Matrix,
    y: NDArray[np.int8],
    forests: int,
    *,
    look: Look = "every-tree",
    seed: int = 0,
    go_on: Callable[[], bool] = lambda: True,
) -> Shadows:
    """Forests on random halves of the patients, as many as `go_on` allows; at least four."""
    inside, told = [], []
    for number in range(forests):
        if number >= 4 and not go_on():
            break
        half = np.zeros(len(y), dtype=bool)
        half[np.random.default_rng([seed, number]).permutation(len(y))[: len(y) // 2]] = True
        forest = exporter(X[half], y[half], 1 + number + 1_000_003 * seed)
        inside.append(half)
        told.append(evidence(forest, X, y, look))
    return Shadows(np.stack(inside), np.stack(told))


def likelihood_ratios(shadows: Shadows, told: Floats) -> Floats:
    """For each patient: how much likelier a release that says this was grown with the patient than without."""
    within, without = (np.where(flags, shadows.evidence, np.nan) for flags in (shadows.inside, ~shadows.inside))
    return _log_density(told, within) - _log_density(told, without)


def attack(shadows: Shadows, targets: int, seed: int = 0) -> AttackResult:
    """Each of the first forests in turn is the release, all others are the attacker's."""
    ratios = np.stack([_against_the_rest(shadows, one) for one in range(min(targets, len(shadows)))])
    return judge(shadows.inside[: len(ratios)], ratios, seed)


def null(shadows: Shadows, targets: int, seed: int = 0) -> AttackResult:
    """The same scores held against who was in a forest that has nothing to do with the release: guessing."""
    ratios = np.stack([_against_the_rest(shadows, one) for one in range(min(targets, len(shadows)))])
    halves = np.zeros_like(shadows.inside[: len(ratios)])
    for number, half in enumerate(halves):
        half[np.random.default_rng([seed, 0x0FF, number]).permutation(half.size)[: half.size // 2]] = True
    return judge(halves, ratios, seed)


def by_threshold(shadows: Shadows, targets: int, seed: int = 0) -> AttackResult:
    """Without shadows: whom the release believes most was there."""
    return judge(shadows.inside[:targets], shadows.evidence[:targets], seed)


def _against_the_rest(shadows: Shadows, one: int) -> Floats:
    rest = np.arange(len(shadows)) != one
    return likelihood_ratios(Shadows(shadows.inside[rest], shadows.evidence[rest]), shadows.evidence[one])


def _log_density(told: Floats, known: Floats) -> Floats:
    """Of a normal with each patient's own mean, and a spread between the patient's own and that of all."""
    seen = np.maximum(np.count_nonzero(~np.isnan(known), axis=0), 1)
    mean = np.nansum(known, axis=0) / seen
    spread = np.nansum((known - mean) ** 2, axis=0) / seen
    never = np.isnan(known).all(axis=0)  # of few shadows, somebody is in all or in none: those are like everybody
    mean, spread = (np.where(never, one[~never].mean(), one) for one in (mean, spread))
    spread = (1 - SHRINK) * spread + SHRINK * spread.mean() + TINY
    return np.asarray(-((told - mean) ** 2) / (2 * spread) - np.log(spread) / 2)


def _log_odds(p: Floats) -> Floats:
    return np.asarray(np.log(p / (1 - p)))
