"""Figures for yes-or-no classifiers; how sure they are is in `spinney.choice.intervals`.

A row counts as positive where `y == 1`. A figure that needs both classes is NaN where one is absent: never a crash,
never a number that means nothing. Scores may be tied; ties are handled exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# What can be resampled: (y, score, weights of shape (resamples, rows)) -> one value per resample.
Metric = Callable[[Flags, Floats, Floats], Floats]

CLIP = 1e-6  # below what a thousand trees with two-digit probabilities can tell apart, so clipping keeps their order


@dataclass(frozen=True)
class Figure:
    """A value and the bounds of its interval."""

    value: float
    low: float
    high: float


# Figures on confusion counts, the last axis of which is (tp, tn, fp, fn)


def confusion(y: ArrayLike, positive: ArrayLike) -> tuple[int, int, int, int]:
    """Counts (tp, tn, fp, fn) of the rows called `positive` against the truth."""
    truth, called = checked(y, positive)
    tp, tn, fp, fn = _counts(truth, called > 0, np.ones((1, len(truth))))[0].astype(int).tolist()
    return tp, tn, fp, fn


def mcc(counts: ArrayLike) -> Floats:
    """Matthews correlation for each (tp, tn, fp, fn) on the last axis; 0 where a class or a call is absent."""
    # float64 before any product, because int64 overflows from some ten thousand rows on. The products of the numerator
    # never exceed the denominator, so their rounding stays in the last digits of the correlation.
    tp, tn, fp, fn = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    denominator = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return np.clip(_ratio(tp * tn - fp * fn, denominator, otherwise=0.0), -1.0, 1.0)


def sensitivity(counts: ArrayLike) -> Floats:
    """Share of the positives that were called positive; NaN without positives."""
    tp, _, _, fn = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    return _ratio(tp, tp + fn)


def specificity(counts: ArrayLike) -> Floats:
    """Share of the negatives that were called negative; NaN without negatives."""
    _, tn, fp, _ = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    return _ratio(tn, tn + fp)


def ppv(counts: ArrayLike) -> Floats:
    """Share of those called positive that are; NaN where nobody is called."""
    tp, _, fp, _ = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    return _ratio(tp, tp + fp)


def npv(counts: ArrayLike) -> Floats:
    """Share of those called negative that are; NaN where everybody is called positive."""
    _, tn, _, fn = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    return _ratio(tn, tn + fn)


def accuracy(counts: ArrayLike) -> Floats:
    """Share of the rows that were called what they are; NaN without rows."""
    tp, tn, fp, fn = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    return _ratio(tp + tn, tp + tn + fp + fn)


def f1(counts: ArrayLike) -> Floats:
    """Harmonic mean of sensitivity and PPV; NaN without positives, called or true."""
    tp, _, fp, fn = np.moveaxis(np.asarray(counts).astype(np.float64), -1, 0)
    return _ratio(2 * tp, 2 * tp + fp + fn)


THRESHOLDED: Mapping[str, Callable[[ArrayLike], Floats]] = MappingProxyType(
    {
        "mcc": mcc,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "ppv": ppv,
        "npv": npv,
        "accuracy": accuracy,
        "f1": f1,
    }
)


# Figures on scores


def auroc(y: ArrayLike, score: ArrayLike) -> float:
    """Chance that a positive scores above a negative, ties half; NaN with one class."""
    return _plain(weighted_auroc, y, score)


def auprc(y: ArrayLike, score: ArrayLike) -> float:
    """Average precision: precision at each distinct score, weighted by the recall it adds; NaN with one class."""
    return _plain(weighted_auprc, y, score)


def brier(y: ArrayLike, p: ArrayLike) -> float:
    """Mean squared distance of the probability from the outcome. One class is enough; NaN only without rows."""
    return _plain(weighted_brier, y, p)


@dataclass(frozen=True)
class OfCurves:
    """A metric that is read off `curves`, which `spinney.choice.intervals` draws once for all that are."""

    read: Callable[[Floats, Floats], Floats]

    def __call__(self, y: Flags, score: Floats, weights: Floats) -> Floats:
        return self.read(*curves(y, score, weights))


def _auroc(hits: Floats, alarms: Floats) -> Floats:
    area = np.sum(np.diff(alarms, axis=1) * (hits[:, 1:] + hits[:, :-1]), axis=1) / 2
    return _ratio(area, hits[:, -1] * alarms[:, -1])


def _auprc(hits: Floats, alarms: Floats) -> Floats:
    precision = _ratio(hits[:, 1:], hits[:, 1:] + alarms[:, 1:], otherwise=0.0)
    value = _ratio(np.sum(np.diff(hits, axis=1) * precision, axis=1), hits[:, -1])
    return np.where(alarms[:, -1] > 0, value, np.nan)


weighted_auroc, weighted_auprc = OfCurves(_auroc), OfCurves(_auprc)  # under each row of `weights`


def weighted_brier(y: Flags, p: Floats, weights: Floats) -> Floats:
    """Brier score under each row of `weights`."""
    return _ratio(weights @ (p - y) ** 2, weights.sum(axis=1))


def at_threshold(threshold: float, figure: Callable[[ArrayLike], Floats]) -> Metric:
    """`figure` (mcc, sensitivity, specificity) of the calls `score >= threshold`, as a metric for intervals."""
    return lambda y, score, weights: figure(_counts(y, score >= threshold, weights))


RANKING_AND_ERROR: Mapping[str, Metric] = MappingProxyType(
    {"auroc": weighted_auroc, "auprc": weighted_auprc, "brier": weighted_brier}
)


# Calibration


@dataclass(frozen=True)
class Bin:
    """Rows with similar predictions: what was said, what happened, to how many."""

    predicted: float
    observed: float
    rows: int


@dataclass(frozen=True)
class Calibration:
    """How far probabilities can be taken at their word: slope 1, intercept 0 and no error are perfect."""

    bins: tuple[Bin, ...]
    slope: float
    intercept: float
    expected_error: float


def calibration(y: ArrayLike, p: ArrayLike, bins: int = 10) -> Calibration:
    """Table of `bins` groups of about equal size, logistic slope and intercept on the logit, expected error.

    Equal sizes and not equal widths: a rare outcome would leave most equal-width bins empty. Equal predictions share a
    bin, so there may be fewer. The expected error is the mean |observed - predicted| over bins, weighted by rows. Slope
    and intercept are fitted together; they are NaN where no finite fit exists (one class, or classes that p separates).
    """
    truth, probability = checked(y, p)
    if not len(truth):
        return Calibration((), np.nan, np.nan, np.nan)
    edges = np.quantile(probability, np.arange(1, bins) / bins)
    where = np.unique(np.searchsorted(edges, probability, side="right"), return_inverse=True)[1]
    rows = np.bincount(where)
    predicted, observed = (np.bincount(where, weights=each) / rows for each in (probability, truth))
    table = tuple(Bin(float(a), float(b), int(n)) for a, b, n in zip(predicted, observed, rows, strict=True))
    error = float(np.sum(rows * np.abs(observed - predicted)) / len(truth))
    slope, intercept = (
        (np.nan, np.nan) if _separated(truth, probability) else _logistic(probability, truth.astype(float))
    )
    return Calibration(table, slope, intercept, error)


def platt(score: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """(slope, intercept) so that `calibrated(score, slope, intercept)` is a probability.

    The logistic curve is fitted on the logit of the score, so a calibrated score gives about (1, 0). The targets are
    Platt's, a little inside 0 and 1, which keeps the fit finite where the score separates the classes. One class gives
    slope 0; a score that ranks the wrong way gives a negative slope, for the caller to notice.
    """
    truth, probability = checked(y, score)
    return _logistic(probability, _inside(truth))


def at_base_rate(score: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """(1, intercept): a score moved by one number, so that it is on average as high as Platt's targets are."""
    truth, probability = checked(y, score)
    (intercept,) = _newton(np.ones((len(truth), 1)), log_odds(probability), _inside(truth), np.zeros(1))
    return 1.0, float(intercept)


def calibrated(score: ArrayLike, slope: float, intercept: float) -> Floats:
    """Platt's curve applied to scores in 0..1."""
    return probability_of(slope * log_odds(np.asarray(score, dtype=np.float64)) + intercept)


# Decisions


def best_threshold(
    y: ArrayLike, score: ArrayLike, aim: Literal["mcc", "youden", "sensitivity"], wanted: float = 0.9
) -> float:
    """The threshold at which `score >= threshold` serves the aim best; NaN with one class.

    "mcc" and "youden" (sensitivity + specificity - 1) are made as large as can be; "sensitivity" takes the highest
    threshold that finds at least the `wanted` share of the positives. A threshold lies halfway between two adjacent
    scores; one that calls every row positive is the lowest score itself; one that calls none is never offered. Tied
    scores are called alike. Among thresholds that serve equally, the highest wins: the fewest alarms.
    """
    truth, scores = checked(y, score)
    hits, alarms = (curve[0, 1:] for curve in curves(truth, scores, np.ones((1, len(truth)))))
    if not len(truth) or hits[-1] == 0 or alarms[-1] == 0:
        return float("nan")
    counts = np.stack([hits, alarms[-1] - alarms, alarms, hits[-1] - hits], axis=-1)
    if aim == "sensitivity":
        best = int(np.argmax(hits >= wanted * hits[-1] * (1 - 1e-12)))  # 0.9 * 10 is not always 9
    else:
        merit = {"mcc": mcc(counts), "youden": sensitivity(counts) + specificity(counts)}[aim]
        best = int(np.argmax(merit >= merit.max() - 1e-12))  # equal merits may differ in the last digit
    distinct = np.unique(scores)[::-1]
    if best == len(distinct) - 1:
        return float(distinct[best])
    halfway = distinct[best] / 2 + distinct[best + 1] / 2
    return float(halfway if halfway > distinct[best + 1] else distinct[best])


# Below: what the figures share


def checked(y: ArrayLike, score: ArrayLike) -> tuple[Flags, Floats]:
    """Labels as flags and scores as numbers, or what is wrong with them."""
    truth, scores = np.asarray(y) == 1, np.asarray(score, dtype=np.float64)
    if truth.ndim != 1 or truth.shape != scores.shape:
        raise ValueError(f"one label and one score per row, got shapes {truth.shape} and {scores.shape}")
    if not np.isfinite(scores).all():
        raise ValueError(f"{int((~np.isfinite(scores)).sum())} of {len(scores)} scores are not finite numbers")
    return truth, scores


def _plain(metric: Metric, y: ArrayLike, score: ArrayLike) -> float:
    truth, scores = checked(y, score)
    return float(metric(truth, scores, np.ones((1, len(truth))))[0])


def _ratio(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full(below.shape, otherwise), where=below > 0)
    return ratio


def _counts(y: Flags, called: Flags, weights: Floats) -> Floats:
    cells = np.stack([y & called, ~y & ~called, ~y & called, y & ~called], axis=1)
    counts: Floats = weights @ cells.astype(np.float64)
    return counts


def curves(y: Flags, score: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weight of positives and of negatives at or above each distinct score, highest first, after a leading 0."""
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.diff(score[order], prepend=np.inf, append=-np.inf))
    ordered = weights.take(order, axis=1)
    everyone = _running(ordered, ends)
    ordered *= y[order]
    hits = _running(ordered, ends)
    everyone -= hits
    return hits, everyone


def _running(weights: Floats, ends: NDArray[np.int64]) -> Floats:
    """Sums of the first weights of each row: of none, and of all before each end of a tie."""
    sums = np.zeros((len(weights), weights.shape[1] + 1))
    np.cumsum(weights, axis=1, out=sums[:, 1:])
    return sums if len(ends) == sums.shape[1] else sums.take(ends, axis=1)


def log_odds(p: Floats) -> Floats:
    inside = np.clip(p, CLIP, 1 - CLIP)
    return np.log(inside) - np.log1p(-inside)


def probability_of(z: Floats) -> Floats:
    tail = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, tail) / (1.0 + tail)


def _separated(y: Flags, score: Floats) -> bool:
    positives, negatives = score[y], score[~y]
    if not len(positives) or not len(negatives):
        return True
    return bool(positives.min() >= negatives.max() or negatives.min() >= positives.max())


def _inside(truth: Flags) -> Floats:
    """Platt's targets: outcomes a little inside 0 and 1, the more so the fewer there are."""
    positives, negatives = int(truth.sum()), int((~truth).sum())
    return np.where(truth, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def _logistic(p: Floats, targets: Floats) -> tuple[float, float]:
    """Slope and intercept on the logit of `p`."""
    x = np.column_stack([log_odds(p), np.ones(len(p))])
    slope, intercept = _newton(x, np.zeros(len(p)), targets, np.array([1.0, 0.0]))
    return float(slope), float(intercept)


def _newton(x: Floats, offset: Floats, targets: Floats, fit: Floats) -> Floats:
    """Coefficients of a logistic curve by Newton's method; steps are halved until the loss falls."""

    def loss(at: Floats) -> float:
        z = x @ at + offset
        return float(np.sum(np.logaddexp(0.0, z) - targets * z))

    for _ in range(100):
        said = probability_of(x @ fit + offset)
        downhill = x.T @ (targets - said)
        curvature = (x.T * (said * (1 - said))) @ x + 1e-10 * np.eye(len(fit))  # a constant score has none in one way
        step = np.linalg.solve(curvature, downhill)
        before = loss(fit)
        while np.abs(step).max() > 1e-10 and loss(fit + step) > before:
            step = step / 2
        fit = fit + step
        if np.abs(step).max() <= 1e-10:
            break
    return fit
