"""Sites on a map: a point each in the plane, as far apart as their characteristic vectors are, as well as that goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from spinney.clusters import Metric, distances

DECIMALS = 3


def places(
    names: Sequence[str], vectors: ArrayLike, metric: Metric = "euclidean", p: float = 3.0
) -> tuple[dict[str, tuple[float, float]], float]:
    """A place per site by classical scaling, and which share of the distances' spread the plane shows.

    Sites that share no feature are drawn half as far again as the farthest pair that does. Signs are fixed, so the
    same vectors give the same map.
    """
    apart = distances(vectors, metric, p)
    if len(names) < 2:
        return dict.fromkeys(names, (0.0, 0.0)), 1.0
    finite = np.isfinite(apart)
    apart = np.where(finite, apart, 1.5 * apart[finite].max())
    centred = np.eye(len(names)) - 1 / len(names)
    values, axes = np.linalg.eigh(-centred @ apart**2 @ centred / 2)
    largest = np.argsort(-values, kind="stable")[:2]
    axes = axes[:, largest] * np.sqrt(np.maximum(values[largest], 0))
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    shown = float(np.maximum(values[largest], 0).sum() / (np.maximum(values, 0).sum() or 1.0))
    rounded = np.round(axes, DECIMALS) + 0.0
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, rounded, strict=True)}, shown
