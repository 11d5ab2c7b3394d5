"""In which steps values are recorded: whole years, tenths of a millimole, thermometers read to a half."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEARLY_ALL = 0.99
FEWEST_VALUES = 20
FINEST_PART = 1e-5
"""Of the values' spread: what is recorded in finer steps is not looked for."""


def recorded_steps(values: NDArray[Any]) -> float | None:
    """The largest round number of which nearly all values are multiples; None if there is none, or too few values.

    >>> recorded_steps(np.arange(20, 90, 0.5))
    0.5
    """
    known = _told(values)
    if len(known) < FEWEST_VALUES:
        return None
    finest = max(float(np.ptp(known)) * FINEST_PART, 1e-12 * float(np.abs(known).max()))
    step = rounded_down(float(np.abs(known).max()))
    while step >= finest:
        if _are_multiples(known, step):
            return step
        step = rounded_down(step * 0.9)
    return None


def converted_steps(values: NDArray[Any]) -> float | None:
    """Any number of which nearly all values are multiples, as where whole numbers were brought to another unit."""
    known = _told(values)
    apart = np.unique(known)
    if len(known) < FEWEST_VALUES or not 2 < len(apart) <= len(known) / 2:
        return None
    gaps = np.diff(apart)
    step = float(gaps[gaps > 1e-9 * np.abs(apart).max()].min())
    return step if _are_multiples(known, step) else None


def _told(values: NDArray[Any]) -> NDArray[np.float64]:
    known = np.asarray(values, dtype=np.float64)
    return np.asarray(known[np.isfinite(known) & (known != 0)])  # nought is a multiple of everything


def _are_multiples(known: NDArray[np.float64], step: float) -> bool:
    parts = known / step
    whole = np.rint(parts)
    return bool(np.mean((whole != 0) & (np.abs(parts - whole) < 0.01)) >= NEARLY_ALL)


def rounded_down(number: float) -> float:
    """The largest of ... 0.5, 1, 2, 5, 10, 20, 50 ... that is not above."""
    power = math.floor(math.log10(number))
    near = [float(f"{digit}e{exponent}") for exponent in (power - 1, power, power + 1) for digit in (1, 2, 5)]
    return max(step for step in near if step <= number)
