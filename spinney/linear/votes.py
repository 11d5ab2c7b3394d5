"""A fit at home: the house's intercept, and scores of patients on whom it was not fitted.

A common fit has one total, of which this house knows its own part. Taking a fold's patients off that part and stepping
again gives coefficients that have not seen them; nothing is asked of anybody for it. A fit of the house alone is simply
made again without the fold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.linear import fit
from spinney.linear.design import Design
from spinney.linear.terms import LinearTerms
from spinney.rows.cohort import Cohort
from spinney.rows.encode import Matrix
from spinney.rows.moments import Moments

Floats = NDArray[np.float64]
Folds = NDArray[np.int64]

DECIMALS = 12  # as of the forests' votes: ties must stay ties


@dataclass(frozen=True)
class LinearFit:
    """Coefficients over a design's columns, with this house's intercept."""

    design: Design
    coefficients: Floats
    intercept: float

    def scores(self, X: Matrix, present: NDArray[np.bool_]) -> Floats:
        """Log-odds of encoded rows."""
        return _scores(self.design.rows(X, present), self.coefficients, self.intercept)


def common_fit(terms: LinearTerms, training: Cohort, fold: Folds, *, summed: bool) -> tuple[LinearFit, Floats]:
    """The federation's fit here, and honest scores of the training rows. `summed`: they are part of the total."""
    design = terms.design(len(training.columns))
    Z, y = design.rows(training.X, training.present), training.y
    b = terms.coefficients()
    honest, own = np.empty(len(y)), terms.sums(Z, y) if summed else None
    for number in np.unique(fold):
        out = fold == number
        without = b if own is None else terms.coefficients(terms.total - own + terms.sums(Z[~out], y[~out]))
        honest[out] = _scores(Z[out], without, fit.intercept(fit.products(Z[~out], without), y[~out]))
    return LinearFit(design, b, fit.intercept(fit.products(Z, b), y)), honest


def local_fit(training: Cohort, fold: Folds, penalty: float) -> tuple[LinearFit, Floats]:
    """What this house can fit alone, and honest scores of its training rows: without each fold it is fitted anew."""
    design = Design.of(Moments.of_rows(training), training.columns)
    Z, y = design.rows(training.X, training.present), training.y
    b, honest = fitted(Z, y, penalty), np.empty(len(y))
    for number in np.unique(fold):
        out = fold == number
        without = fitted(Z[~out], y[~out], penalty, b)
        honest[out] = _scores(Z[out], without, fit.intercept(fit.products(Z[~out], without), y[~out]))
    return LinearFit(design, b, fit.intercept(fit.products(Z, b), y)), honest


def fitted(Z: Floats, y: NDArray[np.int8], penalty: float, start: Floats | None = None) -> Floats:
    """Coefficients of one house's rows."""
    b = np.zeros(Z.shape[1]) if start is None else start
    for _ in range(fit.MOST_STEPS if Z.shape[1] else 0):
        after = fit.stepped(b, fit.gradient_sums(Z, y, b), penalty)
        moved, b = float(np.abs(after - b).max()), after
        if moved < fit.CLOSE_ENOUGH:
            break
    return b


def _scores(Z: Floats, b: Floats, intercept: float) -> Floats:
    return np.asarray(np.round(fit.products(Z, b) + intercept, DECIMALS))
