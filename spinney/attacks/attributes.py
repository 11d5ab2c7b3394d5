"""What are a patient's values that are not known? Those with which the release believes the label most.

Thresholds and leaves say where a patient was: with one value unknown it is looked for alone, with several of them in
turns, each beside the best guesses of the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.membership import evidence
from spinney.attacks.verdict import Flags
from spinney.choice.metrics import Figure
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix

Floats = NDArray[np.float64]
NEAR = 0.05
"""A value counts as told if the guess is within this part of the range."""
CANDIDATES = 41
TURNS = 2


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


def rebuilt(forest: Forest, X: Matrix, y: NDArray[np.int8], hidden: Flags, seed: int = 0) -> Matrix:
    """The rows with what is hidden of them guessed; it begins with the middle of what others have."""
    known = ~hidden & ~np.isnan(X)
    middle = [float(np.median(X[rows, column])) if rows.any() else 0.5 for column, rows in enumerate(known.T)]
    found = np.where(hidden, np.array(middle), X).astype(np.float32)
    rng = np.random.default_rng([seed, 0x120])
    for _ in range(TURNS):
        for column in rng.permutation(X.shape[1]):
            found[:, column] = np.where(hidden[:, column], guess(forest, found, y, column), found[:, column])
    return found


def share_told(forest: Forest, X: Matrix, y: NDArray[np.int8], unknown: float = 0.0, seed: int = 0) -> Floats:
    """For each patient: the share of the values that are told, where so large a part of them is unknown.

    0: one value at a time, all others being known.
    """
    known = ~np.isnan(X)
    if unknown:
        hidden = np.random.default_rng([seed, 0x21D]).random(X.shape) < unknown
        found = rebuilt(forest, X, y, hidden, seed)
        asked = hidden & known
    else:
        found = np.stack([guess(forest, X, y, column) for column in range(X.shape[1])], axis=1).astype(np.float32)
        asked = known
    near = (np.abs(found - X) <= NEAR) & asked
    return np.asarray(near.sum(axis=1) / np.maximum(asked.sum(axis=1), 1))


def attack(
    forest: Forest,
    members: tuple[Matrix, NDArray[np.int8]],
    others: tuple[Matrix, NDArray[np.int8]],
    unknown: float = 0.0,
    seed: int = 0,
) -> Figure:
    """How many values of a hundred more are told of patients who were there than of others, where nothing is learnt."""
    inside, outside = (share_told(forest, *rows, unknown, seed) for rows in (members, others))
    rng = np.random.default_rng([seed, 0xA11])
    drawn = [
        100 * (rng.choice(inside, len(inside)).mean() - rng.choice(outside, len(outside)).mean()) for _ in range(200)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Figure(float(100 * (inside.mean() - outside.mean())), float(low), float(high))
