"""Logistic regressions that a site can choose: its own, beside its own forest, and the federation's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.choice.personalise import LinearCandidate
from spinney.choice.validate import folds_of
from spinney.linear.terms import LinearTerms
from spinney.linear.votes import common_fit, local_fit

if TYPE_CHECKING:
    from spinney.rows.cohort import Cohort
    from spinney.study.study import Study


def local_candidates(training: Cohort, study: Study, penalty: float) -> list[LinearCandidate]:
    """What this site can fit alone: by itself, and beside its forest."""
    fitted, honest = local_fit(training, folds_of(training, study)[0], penalty)
    return [
        LinearCandidate("local linear", fitted, honest, common=False),
        LinearCandidate("local blend", fitted, honest, common=False, beside="local"),
    ]


def common_candidate(
    name: str, terms: LinearTerms, training: Cohort, study: Study, *, summed: bool, beside: str = ""
) -> LinearCandidate:
    """The federation's fit, with this site's intercept."""
    fitted, honest = common_fit(terms, training, folds_of(training, study)[0], summed=summed)
    return LinearCandidate(name, fitted, honest, common=True, beside=beside)
