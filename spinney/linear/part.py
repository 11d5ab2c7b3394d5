"""Coefficients as part of a site's model: log-odds that are added to those of the forest's vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused
from spinney.linear import fit
from spinney.linear.design import Design
from spinney.linear.votes import DECIMALS, LinearFit
from spinney.rows.encode import Column, Matrix

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OddsRatio:
    """By what the odds are multiplied when a value is one standard deviation higher, all others alike."""

    name: str
    ratio: float
    deviation: float  # in the unit of the study


@dataclass(frozen=True)
class LinearPart:
    """log-odds = forest * log-odds of the forest's vote + coefficients' columns + intercept."""

    design: Design
    coefficients: Floats
    intercept: float
    forest: float  # 0: trees have no say
    fitted: Floats  # the coefficients of the logistic regression itself, before they were weighed
    common: bool  # fitted by all sites together, or by this house alone

    @classmethod
    def of(
        cls, fitted: LinearFit, own: tuple[float, float], forest: tuple[float, float], *, common: bool
    ) -> LinearPart:
        """With slope and intercept of its own log-odds and of the forest's."""
        (slope, move), (share, other) = own, forest
        coefficients = slope * fitted.coefficients
        return cls(
            fitted.design,
            coefficients,
            slope * fitted.intercept + move + other,
            share,
            fitted.coefficients,
            common,
        )

    def check(self, columns: int) -> None:
        """Refused if it can't be a part of a model with so many encoded columns."""
        many, design = len(self.design), self.design
        numbers = np.concatenate(
            [design.mean, design.deviation, self.coefficients, self.fitted, [self.intercept, self.forest]]
        )
        alike = {one.shape for one in (design.mean, design.deviation, self.coefficients, self.fitted)} <= {(many,)}
        inside = bool(np.all((design.places >= 0) & (design.places < 2 * columns))) and design.columns == columns
        if not (
            alike and inside and np.all(np.isfinite(numbers)) and np.all(design.deviation > 0) and self.forest >= 0
        ):
            raise Refused("the linear part of the model is not what it should be")

    def log_odds(self, X: Matrix, present: NDArray[np.bool_]) -> Floats:
        """What it adds to the forest's."""
        return np.asarray(
            np.round(fit.products(self.design.rows(X, present), self.coefficients) + self.intercept, DECIMALS)
        )

    def terms(self, X: Matrix, present: NDArray[np.bool_]) -> Floats:
        """What every column adds (rows x columns)."""
        return np.asarray(self.design.rows(X, present) * self.coefficients)

    def odds_ratios(self, columns: Sequence[Column]) -> tuple[OddsRatio, ...]:
        """How the odds change with one standard deviation of each column, strongest first."""
        told = []
        for at, name in enumerate(self.names(columns)):
            place, deviation = int(self.design.places[at]), float(self.design.deviation[at])
            span = columns[place].feature.range if place < self.design.columns else None
            width = span[1] - span[0] if span else 1.0
            told.append(OddsRatio(name, float(np.exp(self.fitted[at])), deviation * width))
        return tuple(sorted(told, key=lambda one: (-abs(np.log(one.ratio)), one.name)))

    def names(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """What the columns are about."""
        return self.design.names(columns)

    def words(self) -> bytes:
        """The same bytes for the same part."""
        numbers = (self.design.mean, self.design.deviation, self.coefficients, self.fitted)
        told = b"".join(one.astype("<f8").tobytes() for one in numbers) + self.design.places.astype("<i8").tobytes()
        return told + repr((float(self.intercept), float(self.forest), self.design.columns, self.common)).encode()
