"""A logistic regression of all sites beside an algorithm's forest. What goes wrong with it never voids the round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spinney.errors import RoundVoid
from spinney.federation.linear_sums import fit_together
from spinney.federation.messages import Description
from spinney.federation.real_sums import Adding
from spinney.federation.seam import Federation
from spinney.linear.terms import LinearTerms

if TYPE_CHECKING:
    from spinney.study.study import Study


def why_none(terms: LinearTerms) -> str:
    """For a reader of an outcome without a common logistic regression."""
    why = "so few rows allow no sums for one" if terms.withheld else "its sums were not opened"
    return f"no common logistic regression: {why}"


def companion(federation: Federation, study: Study, joined: Mapping[str, Description]) -> LinearTerms:
    """The regression beside the forest. A sum that can't be opened costs it, and never the round."""
    if not study.algorithm.accompanied:
        return LinearTerms()
    try:
        adding = Adding(federation, study, {site: one.rows for site, one in joined.items()})
        return fit_together(adding, study, study.algorithm)
    except RoundVoid:
        return LinearTerms()
