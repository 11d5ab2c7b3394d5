"""Where trees may cut a feature: fixed by the study, coarser than values are recorded, whatever a hospital's data are.

A cut that the data choose tells them: half-way between two whole numbers lie two patients. So all sites cut at the same
places, at most every second recorded value, and where several places part a site's patients alike, the roundest of
them is taken. Places are counted from 1; the larger the power of two in a place, the rounder it is.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

MOST_CUTS = 64
FINEST_CUTS = 65_534  # with the end of the range, a cut is 16 bits
DECADES_FROM_ZERO = 3
Spacing = Literal["equal", "logarithmic"] | tuple[float, ...]


def cuts_of(ends: tuple[float, float], resolution: float | None, spacing: Spacing, most: int) -> tuple[float, ...]:
    """The cuts within a range, rising, in the feature's own unit; ValueError where there can be none."""
    low, high = ends
    if resolution is not None and resolution >= high - low:
        raise ValueError("resolution is no smaller than the range, so every value is recorded alike")
    if spacing == "equal":
        return _equal(low, high, resolution, most)
    if spacing == "logarithmic":
        return _logarithmic(low, high, resolution, most)
    return _listed(spacing, low, high, resolution, most)


def scaled(cuts: tuple[float, ...], ends: tuple[float, float]) -> tuple[float, ...]:
    """Cuts as the matrix has them, each a number of single precision, and behind them the end of the range."""
    low, high = ends
    within = (np.array(cuts) - low) / (high - low)
    return (*within.astype(np.float32).astype(np.float64).tolist(), 1.0)


def roundest(first: NDArray[Any], last: NDArray[Any]) -> NDArray[np.int64]:
    """The roundest of the places from `first` to `last`, for many such stretches at once; it is the only one.

    >>> roundest(np.array([5, 5, 9]), np.array([7, 9, 9])).tolist()
    [6, 8, 9]
    """
    above = np.asarray(last, dtype=np.int64)
    differs = np.frexp(((np.asarray(first, dtype=np.int64) - 1) ^ above).astype(np.float64))[1] - 1
    return np.asarray((above >> differs) << differs)


def _equal(low: float, high: float, resolution: float | None, most: int) -> tuple[float, ...]:
    """Whole numbers of recorded values apart, and a quarter of one beyond: no value lies on a cut, none half-way."""
    recorded = (high - low) / (2 * most) if resolution is None else resolution
    apart = max(2, ceil((high - low) / recorded / most - 1e-9)) * recorded
    cuts = low + np.arange(most) * apart + recorded / 4
    return tuple(cuts[cuts < high].tolist())


def _logarithmic(low: float, high: float, resolution: float | None, most: int) -> tuple[float, ...]:
    if low < 0:
        raise ValueError(f"logarithmic cuts need a range from 0 or above, got one from {low:g}; use equal or a list")
    start = low or (2 * resolution if resolution else high / 10**DECADES_FROM_ZERO)
    if high < 2 * start:  # as good as equal
        return _equal(low, high, resolution, most)
    steps = start * (high / start) ** (np.arange(1, most) / most)
    wanted = [start, *(float(f"{value:.6g}") for value in steps)]  # powers differ in the last digits between machines
    if resolution is None:
        return tuple(value for value in dict.fromkeys(wanted) if low <= value < high)
    places = [0.0, *(round((value - low) / resolution) for value in wanted)]
    kept = [places[0]]
    for place in places[1:]:
        if place >= kept[-1] + 2 and len(kept) < most:
            kept.append(place)
    cuts = [low + place * resolution + resolution / 4 for place in kept]
    return tuple(cut for cut in cuts if cut < high)


def _listed(cuts: tuple[float, ...], low: float, high: float, resolution: float | None, most: int) -> tuple[float, ...]:
    if not cuts:
        raise ValueError("cuts: a list needs a number, such as [18, 40, 65]")
    if any(one >= two for one, two in pairwise(cuts)) or not low <= cuts[0] <= cuts[-1] < high:
        raise ValueError(f"cuts must rise and lie within the range, from {low:g} to below {high:g}")
    if len(cuts) > most:
        raise ValueError(f"{len(cuts)} cuts are listed, and most_cuts is {most}; raise it if they are meant")
    if resolution is not None and any(two - one < 2 * resolution * (1 - 1e-9) for one, two in pairwise(cuts)):
        raise ValueError(f"cuts must be at least twice the resolution apart, {2 * resolution:g}")
    return cuts
