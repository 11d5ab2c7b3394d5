"""Is tonight's cohort like last night's? Population stability index per column, and how far the site's vector moved.

A column is reported when its index is at least 0.1 (a slight shift; from 0.25 on a large one, as is usual in practice)
and more than chance would do: without any shift the index of n and m patients over b bins is about a chi-squared
variable with b - 1 degrees of freedom, times 1/n + 1/m. A vector is reported when its numbers, which lie between 0 and
1, moved by 0.05 on average (root mean square).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import chdtri  # scipy.stats takes half a second to import

from spinney.cohort.vault import Vault
from spinney.errors import Declined
from spinney.rows.cohort import cohort_from_frame
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.describe import characteristic_vector
from spinney.rows.encode import texts
from spinney.study.study import Study

BINS = 10
SLIGHT, LARGE = 0.1, 0.25
CHANCE = 0.001
FARTHEST = 0.05


@dataclass(frozen=True)
class Shift:
    """How far one column moved. `chance` is what its index may be without any shift."""

    column: str
    index: float
    chance: float

    @property
    def noticed(self) -> bool:
        return self.index >= max(SLIGHT, self.chance)


@dataclass(frozen=True)
class Drift:
    """How far each column moved, and the characteristic vector; None where a cohort is too small for one or open."""

    shifts: tuple[Shift, ...]
    distance: float | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the report should say: names and indices, no values."""
        words = [
            f"{one.column}: a {'large' if one.index >= LARGE else 'slight'} shift (stability index {one.index:.2f})"
            for one in self.shifts
            if one.noticed
        ]
        if self.distance is not None and self.distance >= FARTHEST:
            words.append(f"the characteristic vector moved by {self.distance:.3f}")
        return tuple(words)


def cohorts_before(vault: Vault, study: Study, tonight: CohortRef) -> list[CohortRef]:
    """The other cohorts of this very study that have passed their checks, oldest first; a refused one is none."""
    return [ref for ref in accepted_cohorts(vault, study) if ref.digest != tonight.digest]


def accepted_cohorts(vault: Vault, study: Study) -> list[CohortRef]:
    """Cohorts of this very study that have passed their checks, oldest first."""
    return [ref for ref in vault.cohorts(study.name) if ref.study == study.digest and vault.is_accepted(ref)]


def drift(before: pa.Table, now: pa.Table, study: Study) -> Drift:
    """Compare two nights' tables column by column, the label included."""
    old, new = before.to_pandas(), now.to_pandas()
    patients = [frame["patient"].nunique() for frame in (old, new)]
    shifts = []
    for name, categories in _columns(study):
        if name in old and name in new:
            counts = _words(old, new, name, categories) if categories else _bins(old[name], new[name])
            shifts.append(_shift(name, *counts, patients))
    return Drift(tuple(shifts), _distance(old, new, study))


def _columns(study: Study) -> list[tuple[str, tuple[str, ...] | None]]:
    """Every column with its words; None: it holds numbers."""
    numbers_or_words = [(one.name, one.categories or (None if one.range else ("0", "1"))) for one in study.features]
    return [*numbers_or_words, (study.label.name, study.label.positive)]


def _words(
    old: pd.DataFrame, new: pd.DataFrame, name: str, categories: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows per category, with another word, and without any; in both tables."""
    counts = []
    for frame in (old, new):
        times = Counter(texts(frame[name].to_numpy(dtype=object)))
        known = [times.pop(word, 0) for word in (*categories, None)]
        counts.append(np.array([*known, times.total()]))
    return counts[0], counts[1]


def _bins(old: pd.Series, new: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows per tenth of the old values, and missing; in both tables."""
    edges = np.unique(np.nanquantile(old, np.linspace(0, 1, BINS + 1)[1:-1])) if old.notna().any() else np.array([])
    counts = []
    for column in (old, new):
        known = column.dropna().to_numpy(dtype=np.float64)
        tenths = np.bincount(np.searchsorted(edges, known, side="left"), minlength=len(edges) + 1)
        counts.append(np.append(tenths, column.isna().sum()))
    return counts[0], counts[1]


def _shift(name: str, old: NDArray[np.int64], new: NDArray[np.int64], patients: list[int]) -> Shift:
    used = (old + new) > 0
    before, now = (_shares(counts[used]) for counts in (old, new))
    index = float(np.sum((now - before) * np.log(now / before)))
    chance = float(chdtri(max(int(used.sum()) - 1, 1), CHANCE)) * sum(1 / max(count, 1) for count in patients)
    return Shift(name, index, chance)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares of the bins; half a row more in each, so that an empty one is rare and not impossible."""
    return np.asarray((counts + 0.5) / (counts + 0.5).sum())


def _distance(old: pd.DataFrame, new: pd.DataFrame, study: Study) -> float | None:
    if study.label.name not in old or study.label.name not in new:
        return None  # rows that are still open have no label yet
    try:
        before, now = (
            characteristic_vector(
                cohort_from_frame(frame, study, frame["patient"].tolist()), study.privacy, missing_rates=True
            )
            for frame in (old, new)
        )
    except Declined:
        return None
    moved = (now - before)[~np.isnan(now - before)]
    return math.sqrt(float(np.mean(moved**2))) if len(moved) else None
