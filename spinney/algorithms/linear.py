"""Federated logistic regression: every hospital adds to the same few sums, and keeps an intercept of its own at home.

On pooled rows it is scikit-learn's LogisticRegression with a penalty and an unpenalised dummy per site. Every site
compares it with what it could have alone: its forest, its own logistic regression, and both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from spinney.base import Settings
from spinney.choice.personalise import Candidate, LinearCandidate, Pool, Rules
from spinney.errors import Refused
from spinney.federation.forest_site import ForestSite, equal_votes
from spinney.federation.linear_candidates import common_candidate, local_candidates
from spinney.federation.linear_sums import LinearSums, fit_together
from spinney.federation.messages import FitResult, Manifest, Weights
from spinney.federation.real_sums import ADDING, Adding
from spinney.federation.seam import Algorithm, Federation, Message
from spinney.federation.welcome import welcome
from spinney.linear.terms import LinearTerms

if TYPE_CHECKING:
    from spinney.study.study import Study

ALONE = ("local", "local linear", "local blend")


class Linear(Settings):
    """Logistic regression over all hospitals."""

    name: Literal["linear"] = Field("linear", description="One logistic regression, with an intercept per site.")
    penalty: float = Field(10.0, gt=0, le=1e6, description="Of the squared coefficients, halved, per column.")
    open_share: float = Field(
        0.25,
        ge=0,
        le=1,
        description="Numbers that an epoch may open, as a share of training rows times columns. Below what steps need, "
        "one round of least squares is summed; below that, nothing.",
    )


class LinearSite(LinearSums, ForestSite):
    """Add up, then choose. Trees are grown for the comparison at home and not lent."""

    steps = frozenset({"join", "finish"}) | ADDING

    def finish(self, order: FitResult) -> Message:  # type: ignore[override]
        """Choose between the common fit and what there is at home."""
        memory = self.house.memory
        summed = self.took_part(order.terms)
        if memory.setdefault("finished-fit", order.digest) != order.digest:
            raise Refused("this round has ended here with another fit; its test rows are not measured twice")
        self._terms, self._summed = order.terms, summed
        if "forest" not in memory:
            self.grown()
        return super().finish(Weights(Manifest((), ()), np.empty(0)))

    def candidates(self, pool: Pool, order: Weights) -> tuple[Sequence[Candidate | LinearCandidate], Rules]:
        """Local forest, local linear, both together; the common fit."""
        local, _ = equal_votes(pool, len(order.manifest))
        house, penalty = self.house, self.linear.penalty
        found: list[Candidate | LinearCandidate] = [local, *local_candidates(self.training, house.study, penalty)]
        if not self._terms:
            return found, Rules(shown=ALONE, default="local blend", opponents=ALONE)
        found.append(common_candidate("linear", self._terms, self.training, house.study, summed=self._summed))
        return found, Rules(shown=(*ALONE, "linear"), default="linear", opponents=ALONE)

    _terms: LinearTerms
    _summed: bool


def coordinate(federation: Federation, study: Study) -> str:
    """Join, add up until it no longer moves, tell."""
    joined = welcome(federation, study)
    adding = Adding(federation, study, {site: one.rows for site, one in joined.items()})
    result = FitResult(fit_together(adding, study, study.algorithm))
    federation.ask("finish", dict.fromkeys(federation.sites, result))
    return result.digest


ALGORITHM = Algorithm(Linear, LinearSite, coordinate)
