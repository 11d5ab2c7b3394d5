"""Who came between two nights? From a peer that keeps what it was lent, without shadow forests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.membership import Exporter, evidence
from spinney.attacks.verdict import Floats, Verdict, judge
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix


def risen(before: Sequence[Forest], after: Sequence[Forest], X: Matrix, y: NDArray[np.int8]) -> Floats:
    """By how much the releases after believe a patient more than those before."""
    earlier, later = (np.mean([evidence(one, X, y) for one in some], axis=0) for some in (before, after))
    return np.asarray(later - earlier)


def attack(
    exporter: Exporter, X: Matrix, y: NDArray[np.int8], *, nights: int, joiners: int, trials: int, seed: int = 0
) -> tuple[Verdict, Verdict]:
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
