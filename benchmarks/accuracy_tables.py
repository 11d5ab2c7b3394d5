"""Figures as Markdown."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def half_width(values: Floats) -> float:
    """Of Student's 95 % interval of the mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def with_width(values: Floats, form: str = ".3f") -> str:
    """The mean and its half-width."""
    return f"{values.mean():{form}} ±{half_width(values):{form.lstrip('+')}}"


def span(values: Floats) -> tuple[float, float, float]:
    """The mean and its 95 % interval."""
    middle, half = float(values.mean()), half_width(values)
    return (middle, middle - half, middle + half)


def counted(counter: Counter[str]) -> str:
    """What happened how often."""
    return ", ".join(f"{kind} {count}" for kind, count in counter.most_common())
