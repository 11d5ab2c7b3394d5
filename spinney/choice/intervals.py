"""How sure figures are: bootstraps that draw patients and not rows, and DeLong's errors of AUROCs.

Where many patients are measured, every resample of all of them would cost far more than it tells. There the patients
are dealt into little blocks, and each block is resampled to the size of the whole (the bag of little bootstraps of
Kleiner, Talwalkar, Sarkar and Jordan, 2014): resamples spread as those of all patients would, and no more rows are
worked on than a block has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.choice.metrics import RANKING_AND_ERROR, Figure, Flags, Floats, Metric, OfCurves, auroc, checked, curves

Ints = NDArray[np.int64]

Asked = Mapping[str, tuple[ArrayLike, Mapping[str, Metric]]]  # model -> its scores, and what is asked of it

LITTLE = 500  # patients of the rarer class in a block; far fewer make intervals of AUPRC too narrow
BATCH_CELLS = 1 << 18  # resamples x rows worked on at once: what fits a processor's cache


@dataclass(frozen=True)
class Drawn:
    """A figure on all rows (one) and on each resample (many)."""

    value: Floats
    draws: Floats

    def __sub__(self, other: Drawn) -> Drawn:
        """The difference, resample by resample: both must have been drawn together."""
        return Drawn(self.value - other.value, self.draws - other.draws)

    def figure(self, level: float = 0.95) -> Figure:
        """The value with a percentile interval, over the resamples in which it is known."""
        value, known = float(self.value[0]), self.draws[~np.isnan(self.draws)]
        if np.isnan(value) or not len(known):
            return Figure(value, np.nan, np.nan)
        low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
        return Figure(value, float(low), float(high))


def intervals(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    groups: ArrayLike,
    metrics: Mapping[str, Metric] = RANKING_AND_ERROR,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, dict[str, Figure]]:
    """Each model's figures with percentile intervals: `intervals(...)["federated"]["auroc"].low`.

    Patients (`groups`, one code per row) are drawn with replacement and bring all their rows. Those with a positive row
    and those without are drawn apart, so every resample has both classes. Bounds are NaN where the value is.
    """
    drawn = resampled(y, {model: (score, metrics) for model, score in scores.items()}, groups, resamples, seed)
    return {model: {name: one.figure(level) for name, one in of.items()} for model, of in drawn.items()}


def paired(
    y: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    groups: ArrayLike,
    metrics: Mapping[str, Metric] = RANKING_AND_ERROR,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, Figure]:
    """The difference a - b of each metric, with an interval from resamples that both models share."""
    drawn = resampled(y, {"a": (scores_a, metrics), "b": (scores_b, metrics)}, groups, resamples, seed)
    return {name: (drawn["a"][name] - drawn["b"][name]).figure(level) for name in metrics}


def auroc_variance(y: ArrayLike, score: ArrayLike) -> float:
    """DeLong's variance of one AUROC, rows taken as independent; NaN with fewer than two rows of a class."""
    return _placement_variance(*_placements(*checked(y, score)))


def delong(y: ArrayLike, scores_a: ArrayLike, scores_b: ArrayLike) -> tuple[float, float, float]:
    """(AUROC of a, AUROC of b, standard error of their difference) on the same rows.

    Rows are taken as independent: with several rows per patient the error is too small, and `paired` is the honest way.
    The areas are NaN with one class, the error with fewer than two rows of either.
    """
    positives_a, negatives_a = _placements(*checked(y, scores_a))
    positives_b, negatives_b = _placements(*checked(y, scores_b))
    variance = _placement_variance(positives_a - positives_b, negatives_a - negatives_b)
    return auroc(y, scores_a), auroc(y, scores_b), float(np.sqrt(variance))


# Resamples


@dataclass(frozen=True)
class _Block:
    """Some patients, and how many the whole has that they stand for."""

    rows: Ints
    patient: Ints  # of every row, counted from 0 in this block
    kinds: tuple[Flags, Flags]  # patients with a row of the class that a resample could lose, and those without
    sizes: tuple[int, int]  # of the whole, kind by kind

    def weights(self, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
        """How often each row is in each resample, in batches of resamples."""
        batch = max(1, BATCH_CELLS // max(1, len(self.rows)))
        for size in (min(batch, resamples - done) for done in range(0, resamples, batch)):
            times = np.zeros((size, len(self.kinds[0])))
            for kind, draws in zip(self.kinds, self.sizes, strict=True):
                if draws:
                    times[:, kind] = _times(int(kind.sum()), draws, size, rng)
            yield times[:, self.patient]


def resampled(y: ArrayLike, asked: Asked, groups: ArrayLike, resamples: int, seed: int) -> dict[str, dict[str, Drawn]]:
    """The figures that are asked for, model by model, all from the same resamples."""
    truth, models = np.asarray(y) == 1, [(checked(y, score)[1], of.values()) for score, of in asked.values()]

    def measure(rows: Ints, weights: Floats) -> Floats:
        here = truth[rows]
        return np.array([value for score, of in models for value in _values(of, here, score[rows], weights)])

    def usual(rows: Ints) -> Floats:
        return measure(rows, np.ones((1, len(rows))))

    rng, whole = np.random.default_rng(seed), usual(np.arange(len(truth)))
    draws: list[Floats] = []
    moved: list[Floats] = []
    blocks = _blocks(truth, groups, resamples, seed)
    for number, block in enumerate(blocks):
        beside = whole - usual(block.rows)  # a block lies a little beside the whole, and nothing else is taken from it
        wanted = (resamples + number) // len(blocks)
        here = [measure(block.rows, weights) for weights in block.weights(wanted, rng)]
        draws += here
        moved += [one + beside for one in here]
    every = np.concatenate(draws, axis=1)
    lowest, highest = (of.reduce(every, axis=1, keepdims=True) for of in (np.fmin, np.fmax))
    # where a model is nearly perfect, moving could leave the range of the figure, which no draw does
    told = iter(map(Drawn, whole, np.clip(np.concatenate(moved, axis=1), lowest, highest)))
    return {model: {name: next(told) for name in metrics} for model, (_, metrics) in asked.items()}


def _values(metrics: Iterable[Metric], y: Flags, score: Floats, weights: Floats) -> Iterator[Floats]:
    drawn: tuple[Floats, Floats] | None = None
    for metric in metrics:
        if isinstance(metric, OfCurves):
            drawn = drawn or curves(y, score, weights)
            yield metric.read(*drawn)
        else:
            yield metric(y, score, weights)


def _blocks(y: Flags, groups: ArrayLike, most: int, seed: int) -> list[_Block]:
    """All patients in one block, or dealt by chance into several where each gets enough of the rarer kind."""
    patient = np.unique(np.asarray(groups), return_inverse=True)[1]
    if patient.shape != y.shape:
        raise ValueError(f"one patient code per row, got {patient.size} codes for {y.size} rows")
    patients = int(patient.max(initial=-1)) + 1
    kind = np.bincount(patient[y], minlength=patients) > 0
    if kind.all():  # every patient has a positive row, so it is the negative rows that a resample could lose
        kind = np.bincount(patient[~y], minlength=patients) > 0
    sizes = int(kind.sum()), int((~kind).sum())
    number = max(1, min(min(sizes) // LITTLE, most))
    rng = np.random.default_rng([seed, number])  # apart from the draws, which are the same for one block as ever
    block = np.zeros(patients, dtype=np.int64)
    for members in (kind, ~kind):
        block[members] = rng.permutation(int(members.sum())) % number
    by_block = np.argsort(block[patient], kind="stable")
    dealt = np.split(by_block, np.cumsum(np.bincount(block[patient], minlength=number))[:-1])
    return [_block(rows, patient[rows], kind, sizes) for rows in dealt]


def _block(rows: Ints, patient: Ints, kind: Flags, sizes: tuple[int, int]) -> _Block:
    here, codes = np.unique(patient, return_inverse=True)
    return _Block(rows, codes, (kind[here], ~kind[here]), sizes)


def _times(members: int, draws: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each member is drawn (size x members)."""
    if members < draws:
        return rng.multinomial(draws, np.full(members, 1 / members), size)
    cells = rng.integers(0, members, (size, draws)) + np.arange(size)[:, None] * members
    return np.bincount(cells.ravel(), minlength=size * members).reshape(size, members)


# DeLong


def _placements(y: Flags, score: Floats) -> tuple[Floats, Floats]:
    """For each positive the share of negatives below it, for each negative that of positives above it; ties half."""
    positives, negatives = score[y], score[~y]
    ranks = _midranks(score)
    below = (ranks[y] - _midranks(positives)) / max(1, len(negatives))
    above = 1 - (ranks[~y] - _midranks(negatives)) / max(1, len(positives))
    return below, above


def _midranks(values: Floats) -> Floats:
    _, where, times = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(times) - (times - 1) / 2)[where]
    return ranks


def _placement_variance(positives: Floats, negatives: Floats) -> float:
    if min(len(positives), len(negatives)) < 2:
        return float("nan")
    return float(np.var(positives, ddof=1) / len(positives) + np.var(negatives, ddof=1) / len(negatives))
