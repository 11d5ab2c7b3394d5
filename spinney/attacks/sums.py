"""What the opened sums of a common logistic regression tell about the rows behind them, if one wants to know.

solve           rows of which all opened gradients and curvatures come out, for somebody who knows them roughly
lit             how many patients a sum is about: at coefficients that somebody could choose, two are enough
direction_of    the row of a patient who came between two sums at the same coefficients
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from spinney.linear import fit

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]


def opened(Z: Floats, y: Labels, starts: Sequence[Floats]) -> Floats:
    """Moments of some rows, and their gradients and curvatures at some coefficients."""
    return np.concatenate([Z.sum(axis=0), (Z**2).sum(axis=0), *(fit.gradient_sums(Z, y, b) for b in starts)])


def starts_of(Z: Floats, y: Labels, steps: int, penalty: float) -> list[Floats]:
    """The coefficients at which a fit of these rows is summed."""
    starts = [np.zeros(Z.shape[1])]
    for _ in range(steps - 1):
        starts.append(fit.stepped(starts[-1], fit.gradient_sums(Z, y, starts[-1]), penalty))
    return starts


def solve(sums: Floats, y: Labels, starts: Sequence[Floats], guess: Floats) -> Floats:
    """Rows whose sums are these, near a guess; the attacker knows all outcomes already."""

    def error(values: Floats) -> Floats:
        return opened(values.reshape(guess.shape), y, starts) - sums

    found = least_squares(error, guess.ravel(), max_nfev=40, xtol=1e-12, ftol=1e-14, gtol=1e-14)
    return np.asarray(found.x.reshape(guess.shape))


def lit(Z: Floats, y: Labels, b: Floats) -> float:
    """The number of patients who have a say in a curvature at these coefficients, as if they all had the same."""
    eta = fit.products(Z, b)
    p = fit.sigmoid(eta + fit.intercept(eta, y))
    w = p * (1 - p)
    return float(w.sum() ** 2 / np.maximum((w**2).sum(), 1e-300))


def direction_of(before: Floats, after: Floats, columns: int) -> Floats:
    """The direction of a patient's row from the mean, by the curvatures with and without that patient at b = 0."""
    change = fit.full(after[columns:], columns) - fit.full(before[columns:], columns)
    values, vectors = np.linalg.eigh((change + change.T) / 2)
    return np.asarray(vectors[:, np.abs(values).argmax()])
