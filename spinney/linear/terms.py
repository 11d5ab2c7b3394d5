"""What all sites know of a common fit: its columns, and the last sum that was opened, from which all else follows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused
from spinney.linear import fit
from spinney.linear.design import Design
from spinney.linear.plan import ONE_ROUND, STEPWISE

Floats = NDArray[np.float64]


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True)
class LinearTerms:
    """Empty where there is no common fit."""

    way: str = ""
    rows: float = 0.0
    penalty: float = 1.0
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    mean: Floats = field(default_factory=_none)
    deviation: Floats = field(default_factory=_none)
    at: Floats = field(default_factory=_none)  # coefficients at which the last sum was made
    total: Floats = field(default_factory=_none)
    withheld: bool = False  # there is no fit because too few numbers may be opened for one

    def __bool__(self) -> bool:
        return bool(self.way)

    @property
    def digest(self) -> str:
        """Two fits with one digest are the same."""
        arrays = (self.places.astype("<i8"), self.mean, self.deviation, self.at, self.total)
        told = b"".join(one.tobytes() for one in arrays) if self else b""
        return hashlib.sha256(repr((self.way, self.rows, self.penalty)).encode() + told).hexdigest()

    def check(self, columns: int) -> None:
        """Refused if they are no terms of a fit over so many encoded columns: they come from another house."""
        many = len(self.places)
        cells = fit.numbers(many) + (self.way == ONE_ROUND)
        shapes = [self.mean.shape, self.deviation.shape, self.at.shape]
        if not self.way:
            many, cells, shapes = 0, 0, [*shapes, self.places.shape]
        sound = self.way in ("", STEPWISE, ONE_ROUND) and shapes == [(many,)] * len(shapes)
        sound = sound and self.total.shape == (cells,) and 0 <= self.rows < np.inf and 0 < self.penalty < np.inf
        told = np.concatenate([self.mean, self.deviation, self.at, self.total])
        sound = sound and bool(np.all(np.isfinite(told))) and bool(np.all(self.deviation > 0))
        ascending = bool(np.all(np.diff(self.places) > 0)) and bool(
            np.all((self.places >= 0) & (self.places < 2 * columns))
        )
        if not sound or not ascending:
            raise Refused("these are no terms of a common logistic regression of this study")

    def design(self, columns: int) -> Design:
        """Its columns, of so many encoded ones."""
        return Design(self.places, self.mean, self.deviation, columns)

    def coefficients(self, total: Floats | None = None) -> Floats:
        """What the last sum comes to, or another total in its place."""
        total = self.total if total is None else total
        if self.way == ONE_ROUND:
            return fit.least_squares(total, len(self.places), self.rows, self.penalty)
        return fit.stepped(self.at, total, self.penalty)

    def sums(self, Z: Floats, y: NDArray[np.int8]) -> Floats:
        """What some rows of a house add to the last sum."""
        return fit.least_squares_sums(Z, y) if self.way == ONE_ROUND else fit.gradient_sums(Z, y, self.at)
