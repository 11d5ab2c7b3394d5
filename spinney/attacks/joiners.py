"""Who came between two nights? From a peer that keeps what it was lent, without shadow forests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.membership import Exporter
from spinney.attacks.verdict import AttackResult, Floats, judge
from spinney.forest.traverse import Walker
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix

NEIGHBOURS = 10
CROWD = 0.75  # how much of the neighbours' move is taken for the crowd's
TINY = 1e-4


def risen(before: Sequence[Forest], after: Sequence[Forest], X: Matrix, y: NDArray[np.int8]) -> Floats:
    """By how much the releases after believe a patient's label more than those before, in spreads of the trees.

    Most of what the ten nearest patients moved by is taken off: who comes lifts the neighbours, too.
    """
    earlier, later = (np.hstack([_votes(one, X) for one in some]) for some in (before, after))
    moved = later.mean(axis=1) - earlier.mean(axis=1)
    crowd = moved[_nearest(X)].mean(axis=1)
    label = np.where(y == 1, 1.0, -1.0)
    return np.asarray(label * (moved - CROWD * crowd) / np.sqrt(earlier.var(axis=1) + later.var(axis=1) + TINY))


def _votes(forest: Forest, X: Matrix) -> Floats:
    return np.asarray(Walker(forest, X.shape[1]).votes(X), dtype=np.float64)


def _nearest(X: Matrix) -> NDArray[np.int64]:
    """The nearest others of every row, by columns of one spread."""
    known = np.nan_to_num(X.astype(np.float64))
    scaled = known / (known.std(axis=0) + TINY)
    squares = (scaled**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * scaled @ scaled.T
    np.fill_diagonal(apart, np.inf)
    return np.argpartition(apart, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]


def attack(
    exporter: Exporter, X: Matrix, y: NDArray[np.int8], *, nights: int, joiners: int, trials: int, seed: int = 0
) -> tuple[AttackResult, AttackResult]:
    """Joiners against patients of neither night, from so many releases on each side; and its null: nobody came."""
    found: list[list[Floats]] = [[], []]
    for trial in range(trials):
        order = np.random.default_rng([seed, trial]).permutation(len(y))
        half = (len(y) - joiners) // 2
        here, came, others = order[:half], order[half : half + joiners], order[half + joiners :]
        asked = np.concatenate([came, others])
        first, again, grown = (
            [exporter(X[rows], y[rows], _seed(seed, trial, number + place * nights)) for number in range(nights)]
            for place, rows in enumerate((here, here, np.concatenate([here, came])))
        )
        for scores, later in zip(found, (grown, again), strict=True):
            scores.append(risen(first, later, X[asked], y[asked]))
    member = np.tile(np.arange(len(asked)) < joiners, (trials, 1))
    attacked, guessed = (judge(member, np.stack(scores), seed) for scores in found)
    return attacked, guessed


def _seed(seed: int, trial: int, number: int) -> int:
    return 1 + number + 1_009 * trial + 1_000_003 * seed
