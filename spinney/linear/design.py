"""Encoded rows as standardised columns: the same columns in the same order at every site, from the moments of all.

A value is (x - mean) / deviation, held to -4..4; a missing one is 0, the mean. Where more than 2 % of all rows lack a
feature, a column says so, standardised too. A column in which nothing differs is left out. A feature that a site
doesn't have is missing in all of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.rows.encode import Column, Matrix

Floats = NDArray[np.float64]

FARTHEST = 4.0
OFTEN_MISSING = 0.02


@dataclass(frozen=True)
class Design:
    """Which columns there are. Places from the number of encoded columns on say where a value is missing."""

    places: NDArray[np.int64]
    mean: Floats
    deviation: Floats
    columns: int  # of the encoded matrix

    @classmethod
    def of(cls, moments: Any, columns: Sequence[Column]) -> Design:
        """From means, deviations and shares without a value."""
        features: dict[str, int] = {}
        for place, column in enumerate(columns):
            features.setdefault(column.feature.name, place)
        first, share = np.array([*features.values()], dtype=np.int64), np.clip(moments.missing, 0.0, 1.0)
        gaps = first[(share[first] > OFTEN_MISSING) & (share[first] < 1 - OFTEN_MISSING)]
        varied = np.flatnonzero(moments.deviation > 0)
        mean = np.concatenate([np.nan_to_num(moments.mean)[varied], share[gaps]])
        deviation = np.concatenate([moments.deviation[varied], np.sqrt(share[gaps] * (1 - share[gaps]))])
        return cls(np.concatenate([varied, gaps + len(columns)]), mean, deviation, len(columns))

    def __len__(self) -> int:
        return len(self.places)

    def rows(self, X: Matrix, present: NDArray[np.bool_]) -> Floats:
        """The design matrix of encoded rows."""
        Z = np.empty((len(X), len(self.places)))
        for at, place in enumerate(self.places):
            column = int(place) % self.columns
            unknown = np.isnan(X[:, column]) if present[column] else np.ones(len(X), dtype=bool)
            if place >= self.columns:
                values = unknown.astype(np.float64)
            else:
                values = np.where(unknown, self.mean[at], X[:, column].astype(np.float64))
            Z[:, at] = np.clip((values - self.mean[at]) / self.deviation[at], -FARTHEST, FARTHEST)
        return Z

    def names(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """What each column is about."""
        return tuple(
            columns[place].name if place < self.columns else f"{columns[place - self.columns].feature.name} missing"
            for place in self.places.tolist()
        )
