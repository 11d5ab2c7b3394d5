"""What is the one value of a patient that is not known? That with which the release believes the label most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.membership import evidence
from spinney.choice.metrics import Figure
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix

Floats = NDArray[np.float64]
NEAR = 0.05
"""A value counts as told if the guess is within this part of the range."""
CANDIDATES = 41


def guess(forest: Forest, X: Matrix, y: NDArray[np.int8], column: int) -> Floats:
    """For every row: the middle of the values under which the release says most for the row's label."""
    values = np.linspace(0, 1, CANDIDATES)
    believed = np.empty((len(values), len(X)))
    for place, value in enumerate(values):
        changed = X.copy()
        changed[:, column] = value
        believed[place] = evidence(forest, changed, y)
    best = believed >= believed.max(axis=0) - 1e-9
    return np.asarray((best * values[:, None]).sum(axis=0) / best.sum(axis=0))


def told(forest: Forest, X: Matrix, y: NDArray[np.int8]) -> Floats:
    """For each patient: the share of known values that are told, one at a time, all others being known."""
    known = ~np.isnan(X)
    near = np.zeros(X.shape)
    for column in range(X.shape[1]):
        near[:, column] = np.abs(guess(forest, X, y, column) - X[:, column]) <= NEAR
    return np.asarray((near * known).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def attack(
    forest: Forest, members: tuple[Matrix, NDArray[np.int8]], others: tuple[Matrix, NDArray[np.int8]], seed: int = 0
) -> Figure:
    """How many values of a hundred more are told of patients who were there than of others, where nothing is learnt."""
    inside, outside = told(forest, *members), told(forest, *others)
    rng = np.random.default_rng([seed, 0xA11])
    drawn = [
        100 * (rng.choice(inside, len(inside)).mean() - rng.choice(outside, len(outside)).mean()) for _ in range(200)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Figure(float(100 * (inside.mean() - outside.mean())), float(low), float(high))
