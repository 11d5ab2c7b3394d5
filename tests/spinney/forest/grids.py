"""Grids for tests: equal steps per column, as fine as is wanted."""

from __future__ import annotations

import numpy as np

from spinney.forest.export import Rounding


def on_steps(steps, probability=0.01):
    """A grid whose cuts are multiples of these steps, and the end of the range."""
    return Rounding(tuple(_cuts(step) for step in steps), probability)


def _cuts(step):
    cuts = (np.arange(1, round(1 / step) + 1) * step).astype(np.float32).astype(np.float64)
    return np.append(cuts[cuts < 1 - 1e-9], 1.0)
