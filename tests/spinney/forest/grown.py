"""Tables to grow on, and a single stump."""

from __future__ import annotations

import numpy as np

from spinney.forest.tree import LEAF, Forest

COLUMNS, TREES = 5, 12
PRESENT = np.ones(COLUMNS, dtype=bool)


def table(seed, rows=500, missing=0.2):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, COLUMNS)).astype(np.float32)
    X[:, 1] = X[:, 1].round()
    y = (X[:, 0] + rng.normal(0, 0.3, rows) > 0.6).astype(np.int8)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def stump_on(feature, threshold=0.5, below=0.0, above=1.0):
    return Forest(
        np.array([feature, LEAF, LEAF], np.int16),
        np.array([threshold, 0, 0]),
        np.zeros(3, bool),
        np.array([0, below, above]),
    )
