"""How much each tree's word counts.

G is a tree's Matthews correlation on the counts of all sites, S on this site's own. Published: weight G where it
passes tau. Ours, `tempered`: exp(8 ((1 - a) G + a S)) with a = n / (n + 400) for a site of n training rows, so that a
large site trusts its own experience and a small one the others'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.metrics import mcc
from spinney.score import Counts

Floats = NDArray[np.float64]

SHARPNESS = 8.0
ROWS_TO_TRUST_ONESELF = 400


def common_weights(total: Counts, precision: float) -> Floats:
    """G of every tree, rounded: all that leaves the aggregator."""
    return np.round(np.rint(mcc(total) / precision) * precision, 6) + 0.0  # no negative zero: it travels as a decimal


def mcc_weights(common: Floats, tau: float) -> Floats:
    """The published rule."""
    return np.where(common > tau, common, 0.0)


def tempered_weights(common: Floats, own: Floats, rows: int) -> Floats:
    """Our default."""
    trust = rows / (rows + ROWS_TO_TRUST_ONESELF)
    return np.asarray(np.exp(SHARPNESS * ((1 - trust) * common + trust * own)))


def capped(weights: Floats, owners: Sequence[str], home: str, largest: float) -> Floats:
    """No other site's trees have more than `largest` of the total weight, unless nobody else has any.

    With the n heaviest sites held at the cap, all the rest makes up 1 - n * largest of the new total.
    """
    weights, names = weights.copy(), np.asarray(owners)
    sums = {site: float(weights[names == site].sum()) for site in {*owners}}
    others = [site for site in {*owners} - {home} if sums[site] > 0]
    heaviest = sorted(others, key=lambda site: (-sums[site], site))
    most = len(heaviest) if sums.get(home) else len(heaviest) - 1
    held, cap = 0, largest * weights.sum()
    while held < most and largest * (held + 1) < 1 and sums[heaviest[held]] > cap:
        held += 1
        rest = weights[~np.isin(names, heaviest[:held])].sum()
        cap = largest * rest / (1 - largest * held)
    for site in heaviest[:held]:
        weights[names == site] *= cap / sums[site]
    return weights


def or_equal(weights: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """The weights of allowed trees; equal ones where all are 0, because zero by zero is no model."""
    kept = np.where(allowed, weights, 0.0)
    return kept if kept.any() else allowed.astype(np.float64)
