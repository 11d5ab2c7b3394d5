"""What a cohort's columns look like, for the person at the keyboard: filled, missing, smallest, middle, largest.

A number of rows below the study's smallest leaf is not told, and a column that so few patients fill is not described.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from spinney.study.settings import Feature
from spinney.study.study import Study


@dataclass(frozen=True)
class FeatureSummary:
    """One feature. A count is None where it is small, and so are numbers where there are none to tell."""

    name: str
    unit: str | None
    filled: int | None
    missing: int | None
    minimum: float | None = None
    median: float | None = None
    maximum: float | None = None


def summarise(table: pa.Table, study: Study) -> tuple[FeatureSummary, ...]:
    """Every feature of the study, in its order."""
    frame: pd.DataFrame = table.to_pandas()
    return tuple(_summary(feature, frame, study.privacy.smallest_leaf) for feature in study.features)


def _summary(feature: Feature, frame: pd.DataFrame, smallest: int) -> FeatureSummary:
    if feature.name not in frame:
        return FeatureSummary(feature.name, feature.unit, 0, len(frame))
    column = frame[feature.name]
    filled, missing = int(column.notna().sum()), int(column.isna().sum())
    small = 0 < filled < smallest or 0 < missing < smallest  # one of them would tell the other
    counts: tuple[int | None, int | None] = (None, None) if small else (filled, missing)
    people = frame.loc[column.notna(), "patient"].nunique()
    if feature.kind == "categorical" or people < smallest:
        return FeatureSummary(feature.name, feature.unit, *counts)
    numbers = column.astype(float)
    return FeatureSummary(
        feature.name, feature.unit, *counts, float(numbers.min()), float(numbers.median()), float(numbers.max())
    )
