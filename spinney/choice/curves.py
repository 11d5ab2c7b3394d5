"""Curves that may be looked at: few points, and from each to the next at least a handful of patients.

A curve through every test row would give back the rank of every patient. So rows are taken in blocks of falling
scores; a block ends where it holds enough patients and no tie is cut, and shares are rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.choice.metrics import Bin

MOST_POINTS = 50
MOST_BINS = 10
FEWEST_PATIENTS = 5
DECIMALS = 2


@dataclass(frozen=True)
class Curve:
    """A model at a few thresholds, the strictest first: false alarms, recall and precision; and its calibration."""

    alarms: tuple[float, ...]
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    bins: tuple[Bin, ...]


def curve(y: ArrayLike, score: ArrayLike, patients: ArrayLike, fewest: int = FEWEST_PATIENTS) -> Curve:
    """The curve of one model; empty where a class is absent or the patients are too few for one point."""
    truth, scores, people = np.asarray(y) == 1, np.asarray(score, dtype=np.float64), np.asarray(patients)
    order = np.argsort(-scores, kind="stable")
    truth, scores, people = truth[order], scores[order], np.unique(people[order], return_inverse=True)[1]
    ends = _block_ends(scores, people, MOST_POINTS, fewest)
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if not ends or not positives or not negatives:
        return Curve((), (), (), ())
    hits = np.cumsum(truth)[ends]
    called = np.asarray(ends) + 1
    return Curve(
        _rounded((called - hits) / negatives),
        _rounded(hits / positives),
        _rounded(hits / called),
        _bins(truth, scores, _block_ends(scores, people, MOST_BINS, fewest)),
    )


def _block_ends(scores: NDArray[np.float64], people: NDArray[np.int64], most: int, fewest: int) -> list[int]:
    """Places of the last rows of the blocks; what is left over at the end belongs to the last one."""
    everybody = len(np.unique(people))
    if everybody < fewest:
        return []
    blocks = min(most, everybody // fewest)  # many rows of few patients make no more points
    ends: list[int] = []
    block: set[int] = set()
    start = read = 0
    for end in np.flatnonzero(np.diff(scores, append=-np.inf)).tolist():  # last row of every tie
        block.update(people[read : end + 1].tolist())
        read = end + 1
        if len(block) >= fewest and read - start >= len(scores) / blocks:
            ends.append(end)
            block, start = set(), read
    return [*ends[:-1], len(scores) - 1]


def _bins(truth: NDArray[np.bool_], scores: NDArray[np.float64], ends: list[int]) -> tuple[Bin, ...]:
    """Lowest predictions first."""
    starts = [0, *(end + 1 for end in ends[:-1])]
    blocks = [slice(start, end + 1) for start, end in zip(starts, ends, strict=True)]
    return tuple(
        Bin(round(float(scores[one].mean()), DECIMALS), round(float(truth[one].mean()), DECIMALS), one.stop - one.start)
        for one in reversed(blocks)
    )


def _rounded(shares: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.round(shares, DECIMALS).tolist())
