"""What candidates said about the test rows, kept beside what happened, so that many splits can be read as one.

It is about single patients: it lives in memory where the rows are, and no report, registry or message has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.choice.metrics import Figure, weighted_auroc

Floats = NDArray[np.float64]

DRAWS = 400
BATCH = 50  # draws at once: patients x draws are in memory


@dataclass(frozen=True)
class SplitVotes:
    """Test rows of one split: whose they are (one code per patient, in all splits the same), outcomes, votes."""

    patients: NDArray[np.int64]
    y: NDArray[np.int8]
    votes: Mapping[str, Floats]


def gain_over_splits(splits: Sequence[SplitVotes], model: str, over: str, seed: int = 0) -> Figure | None:
    """Mean gain in AUROC of one candidate over another, with an interval over patients and splits.

    A draw takes patients with replacement, the same ones in every split, and splits with replacement: a patient who
    is in the test part of many splits is one patient. None where no split has test rows of both classes.
    """

    def gain(one: SplitVotes, weights: Floats) -> Floats:
        return _auroc(one, model, weights) - _auroc(one, over, weights)

    return _over_splits(splits, gain, seed)


def gain_of(one: SplitVotes, model: str, over: str) -> float:
    """Gain in AUROC in one split; NaN without rows of both classes."""
    whole = np.ones((1, len(one.y)))
    return float((_auroc(one, model, whole) - _auroc(one, over, whole))[0])


def auroc_over_splits(splits: Sequence[SplitVotes], model: str, seed: int = 0) -> Figure | None:
    """Mean AUROC of one candidate, with an interval over patients and splits."""
    return _over_splits(splits, lambda one, weights: _auroc(one, model, weights), seed)


def _auroc(one: SplitVotes, model: str, weights: Floats) -> Floats:
    """By draw; NaN where a draw has one class only."""
    return np.asarray(weighted_auroc(one.y == 1, one.votes[model], weights))


def _over_splits(
    splits: Sequence[SplitVotes], figure: Callable[[SplitVotes, Floats], Floats], seed: int
) -> Figure | None:
    usable = [one for one in splits if 0 < np.count_nonzero(one.y == 1) < len(one.y)]
    if not usable:
        return None
    people = np.unique(np.concatenate([one.patients for one in usable]))
    places = [np.searchsorted(people, one.patients) for one in usable]
    ill = np.zeros(len(people), dtype=bool)
    for one, place in zip(usable, places, strict=True):
        ill[place[one.y == 1]] = True
    rng = np.random.default_rng([seed, len(people), len(usable)])
    value = float(np.mean([figure(one, np.ones((1, len(one.y)))) for one in usable]))
    drawn = []
    for size in (min(BATCH, DRAWS - done) for done in range(0, DRAWS, BATCH)):
        times = np.zeros((size, len(people)))
        for kind in (ill, ~ill):
            if members := np.count_nonzero(kind):
                times[:, kind] = rng.multinomial(members, np.full(members, 1 / members), size)
        figures = np.stack([figure(one, times[:, at]) for one, at in zip(usable, places, strict=True)])
        chosen = rng.multinomial(len(usable), np.full(len(usable), 1 / len(usable)), size).T
        known = np.where(np.isnan(figures), 0, chosen)
        with np.errstate(invalid="ignore"):
            drawn.append((known * np.nan_to_num(figures)).sum(axis=0) / known.sum(axis=0))
    low, high = np.nanquantile(np.concatenate(drawn), [0.025, 0.975])
    return Figure(value, float(min(low, value)), float(max(high, value)))
