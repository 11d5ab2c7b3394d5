"""A finished round in a registry, and rows for its model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from spinney.connectors.mlflow import Registry, Version, lineage_of
from tests.spinney.in_process import Wood


def register(registry: Registry, wood: Wood, round_: int = 1, site: str = "elm") -> Version:
    outcome = wood.outcomes[site]
    lineage = lineage_of(wood.study, site, outcome.model, round_, "c" * 64, "a" * 64)
    return registry.register(wood.study, outcome, lineage)


def frame(rows: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    values = rng.random((rows, 4))
    values[rng.random(values.shape) < 0.1] = np.nan
    return pd.DataFrame(values, columns=[f"x{place}" for place in range(4)])
