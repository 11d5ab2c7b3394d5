"""How much each tree's word counts.

G is a tree's Matthews correlation on the counts of all sites, S on this site's own. Published: weight G where it
passes tau. Ours, `tempered`: exp(8 ((1 - a) G + a S)) with a = n / (n + 400) for a site of n training rows, so that a
large site trusts its own experience and a small one the others'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.choice.metrics import mcc
from spinney.forest.score import Counts

Floats = NDArray[np.float64]

SHARPNESS = 8.0
ROWS_TO_TRUST_ONESELF = 400


def common_weights(total: Counts, precision: float, taus: Sequence[float] = ()) -> Floats:
    """G of every tree, rounded: all that leaves the aggregator.

    What is above a tau stays above it and what is not does not get there, so that rounding moves no tree over one:
    there the next step is taken. It can't be done where two tau are nearer to each other than a step.
    """
    exact = mcc(total)
    steps = np.rint(exact / precision)
    for tau in sorted(taus):
        highest_below = np.floor(np.round(tau / precision, 6))
        steps = np.where(exact > tau, np.maximum(steps, highest_below + 1), np.minimum(steps, highest_below))
    return np.round(steps * precision, 6) + 0.0  # no negative zero: it travels as a decimal


def mcc_weights(common: Floats, tau: float) -> Floats:
    """The published rule."""
    return np.where(common > tau, common, 0.0)


def tempered_weights(common: Floats, own: Floats, rows: int) -> Floats:
    """Our default."""
    trust = rows / (rows + ROWS_TO_TRUST_ONESELF)
    return np.asarray(np.exp(SHARPNESS * ((1 - trust) * common + trust * own)))


class Cap:
    """No other site's trees have more than `largest` of the total weight, unless nobody else has any.

    With the n heaviest sites held at the cap, all the rest makes up 1 - n * largest of the new total.
    """

    def __init__(self, owners: Sequence[str], home: str, largest: float) -> None:
        sites, self._owner = np.unique(np.asarray(owners, dtype=str), return_inverse=True)
        self._home, self._largest = sites == home, largest
        self._by_site = np.argsort(self._owner, kind="stable")
        # every site's trees follow a 0, from which on `reduceat` adds exactly as `sum` would add them alone
        self._slots = np.arange(len(self._owner)) + self._owner[self._by_site] + 1
        self._zeros = np.setdiff1d(np.arange(len(self._owner) + len(sites)), self._slots)

    def on(self, weights: Floats) -> Floats:
        """The weights with heavy sites held."""
        sums = self._sums(weights)
        heaviest = np.argsort(-sums, kind="stable")
        heaviest = heaviest[~self._home[heaviest] & (sums[heaviest] > 0)]
        most = len(heaviest) if sums[self._home].any() else len(heaviest) - 1
        held, cap = 0, self._largest * weights.sum()
        while held < most and self._largest * (held + 1) < 1 and sums[heaviest[held]] > cap:
            held += 1
            rest = weights[~np.isin(self._owner, heaviest[:held])].sum()
            cap = self._largest * rest / (1 - self._largest * held)
        factor = np.ones(len(sums))
        factor[heaviest[:held]] = cap / sums[heaviest[:held]]
        return weights * factor[self._owner]

    def _sums(self, weights: Floats) -> Floats:
        """The weight of every site."""
        spaced = np.zeros(len(self._slots) + len(self._zeros))
        spaced[self._slots] = weights[self._by_site]
        return np.add.reduceat(spaced, self._zeros)


def or_equal(weights: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """The weights of allowed trees; equal ones where all are 0, because zero by zero is no model."""
    kept = np.where(allowed, weights, 0.0)
    return kept if kept.any() else allowed.astype(np.float64)
