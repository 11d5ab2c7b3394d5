"""Patients with age, sex and a marker, two rows each, along a year in which the marker may turn."""

from __future__ import annotations

import numpy as np
import pandas as pd

from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.study.study import Study

FEATURES = [
    {"name": "age", "kind": "continuous", "range": [0, 110]},
    {"name": "sex", "kind": "categorical", "categories": ["female", "male", "other"]},
    {"name": "marker", "kind": "continuous", "range": [0, 1]},
]


def study(**sections) -> Study:
    small = {"forest": {"trees": 6, "max_depth": 4}, "choice": {"bootstrap": 100, "folds": 3}}
    return Study.model_validate(
        {"name": "wood", "features": FEATURES, "label": {"name": "y"}, "quorum": 3, **small, **sections}
    )


def table(rows: int = 600, seed: int = 0, drift: float = 0.0) -> pd.DataFrame:
    """A patient per two rows; after the drift's share of the time the marker says the opposite."""
    rng = np.random.default_rng(seed)
    marker = rng.random(rows)
    turned = np.arange(rows) >= rows * (1 - drift)
    odds = np.where(turned, -1, 1) * 8 * (marker - 0.5)
    return pd.DataFrame(
        {
            "age": rng.integers(1, 95, rows),
            "sex": rng.choice(["female", "male", "other"], rows, p=[0.5, 0.49, 0.01]),
            "marker": marker,
            "y": (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(int),
            "index_time": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(rows), unit="h"),
            "patient": [f"p{one}" for one in rng.permutation(rows) // 2],
        }
    )


def cohort(wood: Study, seed: int = 0, drift: float = 0.0) -> Cohort:
    rows = table(seed=seed, drift=drift)
    return cohort_from_frame(rows, wood, rows["patient"].tolist())
