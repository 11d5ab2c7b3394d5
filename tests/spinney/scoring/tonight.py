"""A hundred and twenty patients tonight, thirty of them without an outcome, and what a model says of those."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd

from spinney.cohort.handover import Handover
from spinney.scoring.scores import Score, ScoredBy, to_write

NOW = datetime(2026, 3, 14, 2, 30, tzinfo=UTC)
SOURCE = ScoredBy("wood", 3, "ab" * 32)
OPEN = 30


def table(rows: int = 120) -> pd.DataFrame:
    """Finished rows, of which the last thirty have no outcome yet."""
    rng = np.random.default_rng(5)
    made = pd.DataFrame(rng.random((rows, 4)), columns=[f"x{place}" for place in range(4)])
    made["y"] = np.where(np.arange(rows) < rows - OPEN, (made["x0"] > 0.5).astype(int).astype(str), None)
    made["patient"] = [f"mrn-{number:05d}" for number in range(rows)]
    made["index_time"] = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(rows), unit="h")
    return made


def scores(handover: Handover, source: ScoredBy = SOURCE) -> list[Score]:
    return list(to_write(handover, source, "wood"))


def told(rows: int, skill: float = 4.0, seed: int = 0, shift: float = 0.0) -> pd.DataFrame:
    """Probabilities that are right on average (but for a shift); the smaller the skill, the less they say."""
    rng = np.random.default_rng(seed)
    odds = skill * rng.normal(size=rows)
    chance = 1 / (1 + np.exp(-odds))
    return pd.DataFrame(
        {
            "patient": [f"h{number}" for number in range(rows)],
            "index_time": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(rows), unit="h"),
            "probability": np.clip(chance + shift, 0, 1),
            "decision": chance > 0.5,
            "outcome": (rng.random(rows) < chance).astype(int),
        }
    )
