"""Tables for the grower, with columns of several kinds."""

from __future__ import annotations

import numpy as np


def table(rows, missing, seed, patients=None):
    """Columns of several kinds: finely and coarsely recorded, yes or no, the same for all."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 5)).astype(np.float32)
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = X[:, 2].round()
    X[:, 3] = 0.25
    y = (X[:, 0] + 0.3 * X[:, 2] + rng.normal(0, 0.3, rows) > 0.7).astype(np.int8)
    X[rng.random(X.shape) < missing] = np.nan
    people = rng.permutation(np.arange(rows) % (patients or rows))
    return X, y, people, rng
