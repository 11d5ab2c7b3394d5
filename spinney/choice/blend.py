"""Trees and a logistic regression as one vote: each calibrated at home, then the mean of their log-odds.

From about a thousand rows on a site may weigh the two, by a ridge towards equal weights; below, it may not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.choice import metrics
from spinney.forest.votes import DECIMALS
from spinney.linear.part import LinearPart

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Line = tuple[float, float]  # slope and intercept of log-odds

ROWS_TO_WEIGH = 1000
RIDGE = 100.0
EQUAL = 0.5


def blended(votes: Floats, part: LinearPart, added: Floats) -> Floats:
    """Votes of trees and what a linear part adds to their log-odds, as one vote."""
    share = part.forest * metrics.log_odds(votes) if part.forest else 0.0
    return np.asarray(np.round(metrics.probability_of(share + added), DECIMALS))


def line_of(votes: Floats, y: Labels) -> Line:
    """Platt's slope and intercept; only a move to the base rate where votes and outcomes don't rise together."""
    slope, move = metrics.platt(votes, y)
    return (slope, move) if slope > 0 else metrics.at_base_rate(votes, y)


def ridge_shares(first: Floats, second: Floats, y: Labels) -> tuple[float, float]:
    """How much each of two calibrated log-odds counts: by logistic regression, pulled towards a half each."""
    X = np.column_stack([first, second, np.ones(len(first))])
    pull, towards = np.array([RIDGE, RIDGE, 0.0]), np.array([EQUAL, EQUAL, 0.0])
    fit = towards.copy()
    for _ in range(25):
        p = metrics.probability_of(X @ fit)
        gradient = X.T @ (p - y) + pull * (fit - towards)
        curvature = (X * (p * (1 - p))[:, None]).T @ X + np.diag(pull)
        step = np.linalg.solve(curvature, gradient)
        fit = fit - step
        if np.abs(step).max() < 1e-9:
            break
    shares = np.round(np.maximum(fit[:2], 0.0), 6)
    return (float(shares[0]), float(shares[1])) if shares.any() else (EQUAL, EQUAL)
