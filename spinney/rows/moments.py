"""Means, deviations and shares without a value of encoded columns, from counts, sums and sums of squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.rows.cohort import Cohort

Floats = NDArray[np.float64]

RATE_DECIMALS = 3
SMALLEST_DEVIATION = 1e-4


@dataclass(frozen=True)
class Moments:
    """Of all training rows together, per encoded column; columns are scaled to 0..1 by the study's ranges."""

    rows: float
    positives: float
    known: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, values: Floats) -> Moments:
        """From the numbers of an opened sum. What can't be was told by a site that lies, and is held to what can."""
        (rows, positives), columns = values[:2], values[2:].reshape(-1, 3).T
        known, sums, squares = columns
        known = np.minimum(known, rows)
        sums = np.minimum(sums, known)
        return cls(float(rows), float(min(positives, rows)), known, sums, np.minimum(squares, sums))

    @classmethod
    def of_rows(cls, rows: Cohort) -> Moments:
        """Those of some rows alone, for what stays at home."""
        X = rows.X.astype(np.float64)
        known = np.count_nonzero(~np.isnan(X), axis=0) * rows.present
        sums, squares = (np.nansum(values, axis=0) * rows.present for values in (X, X**2))
        return cls(float(len(rows)), float(rows.y.sum()), known.astype(np.float64), sums, squares)

    @property
    def base_rate(self) -> float:
        """The share of positive rows, rounded."""
        return round(self.positives / self.rows, RATE_DECIMALS) if self.rows else 0.5

    @property
    def mean(self) -> Floats:
        """Of every column; NaN where nobody said anything."""
        known = self.known > 0
        return np.asarray(np.divide(self.sums, self.known, out=np.full(len(known), np.nan), where=known))

    @property
    def deviation(self) -> Floats:
        """Of every column; 0 where nothing is known, or everything is alike."""
        known = np.maximum(self.known, 1)
        spread = np.sqrt(np.maximum(self.squares / known - (self.sums / known) ** 2, 0.0))
        return np.asarray(np.where(spread < SMALLEST_DEVIATION, 0.0, spread))

    @property
    def missing(self) -> Floats:
        """Share of rows without a value, those of sites without the column among them."""
        return np.asarray(1 - self.known / max(self.rows, 1.0))
