"""A logistic regression of all sites by few secure sums: moments, then gradients and curvatures step by step.

Where a step starts is not for the coordinator to say: it shows how the last sum was opened, and every site opens it
again and computes the start by itself. How many steps there may be follows from the moments, at every site alike, and
a site answers no more. What comes out is the last sum and where it was made (`LinearTerms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused
from spinney.federation.messages import AddOrder, FitOrder, OpenedSum
from spinney.federation.moments import MOMENTS, MomentSums, federated_moments
from spinney.federation.real_sums import Adding, Terms
from spinney.linear import fit
from spinney.linear.design import Design
from spinney.linear.plan import ONE_ROUND, STEPWISE, Plan
from spinney.linear.terms import LinearTerms
from spinney.rows.encode import columns_of
from spinney.rows.moments import Moments

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]

FIT, SQUARES = "fit-", "least-squares"
CLOSE = 3e-5  # the next step would be about the square of this
AS_COMPUTED_HERE = 1e-6


class LinearSettings(Protocol):
    """What an algorithm with a common logistic regression lets a study say."""

    @property
    def penalty(self) -> float:
        """Of the squared coefficients."""

    @property
    def open_share(self) -> float:
        """Numbers that may be opened in an epoch, as a share of training rows times columns."""


def gradient_terms(columns: int) -> Terms:
    """Of a gradient and a curvature."""
    return Terms(fit.numbers(columns), -fit.MOST_PER_ROW, fit.MOST_PER_ROW)


def squares_terms(columns: int) -> Terms:
    """Of the one-round variant."""
    return Terms(fit.numbers(columns) + 1, -fit.MOST_PER_ROW_LEAST_SQUARES, fit.MOST_PER_ROW_LEAST_SQUARES)


def way_to_fit(moments: Moments, study: Study, settings: LinearSettings) -> tuple[Design, Plan]:
    """The columns of the fit, and the way that the limit allows."""
    columns = columns_of(study.features)
    design = Design.of(moments, columns)
    return design, Plan.of(moments.rows, len(design), 2 + 3 * len(columns), settings.open_share)


# ---------------------------------------------------------------------------------------------------------------
# The site


class LinearSums(MomentSums):
    """A part that tells gradients; what it may be asked follows from the moments."""

    @property
    def linear(self) -> LinearSettings:
        """The study's words."""
        settings: LinearSettings = self.house.study.algorithm
        return settings

    def summands(self, order: AddOrder) -> tuple[Floats, Terms]:
        """Moments, or the gradient and curvature at coefficients that follow from the sums before."""
        if order.subject == MOMENTS:
            return super().summands(order)
        if not isinstance(order, FitOrder):
            raise Refused(f"{order.subject} is no sum of this algorithm")
        number = self._number(order.subject)
        if number == 1:
            self.moments(order.last)
        design, plan = self.plan()
        if order.subject == SQUARES and plan.way == ONE_ROUND:
            self._start(1, np.zeros(len(design)))
            return fit.least_squares_sums(self._rows(design), self.training.y), squares_terms(len(design))
        if order.subject == SQUARES or plan.way != STEPWISE or number > plan.sums:
            raise Refused(f"{order.subject} would open more than this study's limit allows")
        at = self._at(number, order.last, len(design))
        return fit.gradient_sums(self._rows(design), self.training.y, at), gradient_terms(len(design))

    def plan(self) -> tuple[Design, Plan]:
        """What follows from the moments."""
        return way_to_fit(Moments.of(self.house.recall("told-moments")), self.house.study, self.linear)

    def took_part(self, terms: LinearTerms) -> bool:
        """Whether this house's rows are in the last sum. Refused if the terms are not those that it has computed."""
        house = self.house
        terms.check(len(house.cohort.columns))
        if house.resumes or not terms:
            return bool(house.memory.get("told-linear") == terms.digest)
        number = next((one for one in range(fit.MOST_STEPS, 0, -1) if f"linear-at-{one}" in house.memory), 0)
        if not number:
            return False
        design, _ = self.plan()
        mine = (design.places, design.mean, design.deviation, house.memory[f"linear-at-{number}"])
        theirs = (terms.places, terms.mean, terms.deviation, terms.at)
        alike = all(
            one.shape == other.shape and np.allclose(one, other, rtol=0, atol=AS_COMPUTED_HERE)
            for one, other in zip(mine, theirs, strict=True)
        )
        if not alike or terms.penalty != self.linear.penalty:
            raise Refused("the coefficients are not those of the sums that this house was part of")
        house.memory["told-linear"] = terms.digest
        return True

    def _number(self, subject: str) -> int:
        number = "1" if subject == SQUARES else subject.removeprefix(FIT)
        if not number.isdecimal() or subject not in (SQUARES, f"{FIT}{int(number)}"):
            raise Refused(f"{subject} is no sum of this algorithm")
        return int(number)

    def _at(self, number: int, last: OpenedSum, columns: int) -> Floats:
        """The coefficients of a step: 0 in the first, then what the sum of the step before comes to."""
        if number == 1:
            return self._start(1, np.zeros(columns))
        if last.subject != f"{FIT}{number - 1}":
            raise Refused(f"step {number} follows from step {number - 1}")
        before: Floats = self.house.recall(f"linear-at-{number - 1}")
        total = self.reopened(last, gradient_terms(columns))
        return self._start(number, fit.stepped(before, total, self.linear.penalty))

    def _start(self, number: int, at: Floats) -> Floats:
        if not np.array_equal(self.house.memory.setdefault(f"linear-at-{number}", at), at):
            raise Refused(f"step {number} was made from other coefficients before")
        return at

    def _rows(self, design: Design) -> Floats:
        return design.rows(self.training.X, self.training.present)


# ---------------------------------------------------------------------------------------------------------------
# The coordinator


def fit_together(adding: Adding, study: Study, settings: LinearSettings) -> LinearTerms:
    """The common fit; empty where too little may be opened for one. RoundVoid if a sum can't be opened."""
    moments, found = federated_moments(adding, len(columns_of(study.features)))
    design, plan = way_to_fit(moments, study, settings)
    if not plan.way:
        return LinearTerms(withheld=True)
    at, opened = np.zeros(len(design)), found.opened
    known = (plan.way, moments.rows, settings.penalty, design.places, design.mean, design.deviation)
    if plan.way == ONE_ROUND:
        total = adding.total(SQUARES, squares_terms(len(design)), FitOrder, last=opened).values
        return LinearTerms(*known, at, total)
    terms = LinearTerms()
    for number in range(1, plan.sums + 1):
        one = adding.total(f"{FIT}{number}", gradient_terms(len(design)), FitOrder, last=opened)
        terms = LinearTerms(*known, at, one.values)
        after, opened = fit.stepped(at, one.values, settings.penalty), one.opened
        if np.abs(after - at).max() < CLOSE:
            break
        at = after
    return terms
