"""One patient more between two characteristic vectors: the mean that moved tells who moved it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinney.choice.metrics import Figure
from spinney.rows.encode import Matrix

Floats = NDArray[np.float64]
Teller = Callable[[Matrix], Floats]
"""What a site tells of its rows: the mean of every column, rounded as it would leave."""


def newcomer(before: Floats, after: Floats, rows_before: int) -> Floats:
    """The values of the patient who came, if the attacker knows how many there were; within the range."""
    return np.asarray(np.clip((rows_before + 1) * after - rows_before * before, 0.0, 1.0))


def attack(tell: Teller, X: Matrix, rows: int, trials: int, seed: int = 0) -> tuple[Figure, Figure]:
    """Mean error of the newcomer's values as a share of the range, and that of guessing everybody's mean."""
    errors: list[Floats] = []
    guessed: list[Floats] = []
    for trial in range(trials):
        chosen = np.random.default_rng([seed, trial]).permutation(len(X))[: rows + 1]
        before, after = tell(X[chosen[:-1]]), tell(X[chosen])
        truth = X[chosen[-1]].astype(np.float64)
        known = ~np.isnan(truth) & ~np.isnan(before) & ~np.isnan(after)
        errors.append(np.abs(newcomer(before, after, rows) - truth)[known])
        guessed.append(np.abs(before - truth)[known])
    return _figure(errors, seed), _figure(guessed, seed)


def _figure(errors: list[Floats], seed: int) -> Figure:
    means = np.array([one.mean() for one in errors if len(one)])
    draws = np.random.default_rng([seed, 0xD1F]).integers(0, len(means), (200, len(means)))
    low, high = np.quantile(means[draws].mean(axis=1), (0.025, 0.975))
    return Figure(float(means.mean()), float(low), float(high))
