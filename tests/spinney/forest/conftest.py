"""A fitted scikit-learn forest, and the same trees as ours."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from spinney.forest.export import export_forest
from tests.spinney.forest.grown import TREES, table


@pytest.fixture(scope="session", params=[0.0, 0.2], ids=["nothing missing", "values missing"])
def grown(request):
    """A fitted scikit-learn forest, and the same trees as ours."""
    X, y = table(0, missing=request.param)
    model = RandomForestClassifier(TREES, max_depth=6, random_state=0).fit(X, y)
    drawn = np.stack([np.bincount(rows, minlength=len(y)) for rows in model.estimators_samples_])
    return model, export_forest(model.estimators_, drawn, X, y, np.arange(len(y)), floor=1, rounding=None)


@pytest.fixture(scope="session")
def forest(grown):
    return grown[1]
