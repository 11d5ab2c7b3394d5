"""Federations to measure: a public data set dealt to sites, and made-up ones of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from spinney.forest.export import Rounding, grid_of
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.encode import columns_of
from spinney.study.settings import Feature
from spinney.study.study import Study


def study_of(
    features: Sequence[str],
    trees: int,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    privacy: Mapping[str, Any] | None = None,
    **forest: Any,
) -> Study:
    """BOFRF with default settings."""
    spans = ranges or dict.fromkeys(features, (-5.0, 5.0))
    described = [{"name": name, "kind": "continuous", "range": list(spans[name])} for name in features]
    return Study.model_validate(
        {
            "name": "wire",
            "features": described,
            "label": {"name": "y"},
            "forest": {"trees": trees, **forest},
            "privacy": privacy or {},
        }
    )


def unit_grid(columns: int) -> Rounding:
    """The grid of so many continuous features from 0 to 1, as studies have it by default."""
    features = [Feature(name=f"x{place}", kind="continuous", range=(0, 1)) for place in range(columns)]
    return grid_of(columns_of(features), 0.01)


def breast_cancer(sites: int, trees: int) -> tuple[Study, dict[str, Cohort]]:
    """The public data set, dealt to some sites; to many only with a lower floor for the smallest cohort."""
    data = load_breast_cancer(as_frame=True)
    table = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    ranges = {name: (0.0, float(np.ceil(table[name].max() * 1.1 * 1e3) / 1e3)) for name in table.columns}
    study = study_of(list(table.columns), trees, ranges, {"smallest_cohort": 10} if sites > 10 else {})
    table["y"] = 1 - data.target
    table = table.sample(frac=1, random_state=7)
    return study, {f"site{n:02d}": cohort_from_frame(table.iloc[n::sites], study) for n in range(sites)}


def made_up(
    sites: int, trees: int, rows: int, features: int = 30, secure_sum: str = "masked", **forest: Any
) -> tuple[Study, dict[str, Cohort]]:
    """Normal features, the first ten of which matter, and noise; `rows` at every site."""
    names = [f"x{n}" for n in range(features)]
    study = study_of(names, trees, privacy={"secure_sum": secure_sum}, **forest)
    cohorts = {}
    for number in range(sites):
        rng = np.random.default_rng(number)
        table = pd.DataFrame(rng.normal(size=(rows, features)), columns=names)
        table["y"] = (table[names[:10]].sum(axis=1) + 3 * rng.normal(size=rows) > 0).astype(int)
        cohorts[f"site{number:02d}"] = cohort_from_frame(table, study)
    return study, cohorts
