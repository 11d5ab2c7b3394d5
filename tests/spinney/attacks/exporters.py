"""Made-up people, and forests that remember them or hardly do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.forest.export import export_forest
from spinney.forest.grow import grow
from spinney.forest.tree import Forest
from spinney.study.settings import ForestSettings

Rows = NDArray[np.float32]
Labels = NDArray[np.int8]


def people(count: int, seed: int) -> tuple[Rows, Labels]:
    """Five values each, of which one matters a little."""
    rng = np.random.default_rng(seed)
    X = rng.random((count, 5)).astype(np.float32)
    return X, (X[:, 0] + rng.random(count) > 1).astype(np.int8)


def remembering(X: Rows, y: Labels, seed: int) -> Forest:
    """Leaves of one patient."""
    return _grown(X, y, seed, 1)


def collapsed(X: Rows, y: Labels, seed: int) -> Forest:
    """Leaves of at least twenty."""
    return _grown(X, y, seed, 20)


def _grown(X: Rows, y: Labels, seed: int, floor: int) -> Forest:
    patients = np.arange(len(y))
    settings = ForestSettings(trees=20, min_samples_leaf=floor, max_depth=32, engine="scikit-learn")
    grown = grow(X, y, patients, settings, seed)
    return export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=None)
