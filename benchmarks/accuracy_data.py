"""What the accuracy benchmark runs on: the four heart hospitals, and the twelve environments of the BOFRF publication.

Ranges belong to a study, so that of the hospitals is written as its authors would: from what the variables can be. The
data sets that are dealt out to made-up sites take theirs from the whole data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spinney.study.settings import Feature, Label
from spinney.study.study import Study

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
FILLED = 0.1
LABELS = {"pima": "outcome", "retinopathy": "class", "saheart": "chd"}
PUBLISHED = ("local AdaBoost", "BOPPID", "local forest", "BOFRF as published", "personalised")


@dataclass(frozen=True)
class Environment:
    """A published federation: (rows, positives) of its sites, and the published AUROCs as means over its sites."""

    data: str
    sites: tuple[tuple[int, int], ...]
    published: tuple[float, ...]  # in the order of PUBLISHED

    @property
    def secure_sum(self) -> str:
        """Two sites can't hide their counts from each other."""
        return "masked" if len(self.sites) > 2 else "trusted-third-party"


ENVIRONMENTS = {
    "E1": Environment("pima", ((400, 152), (368, 116)), (0.798, 0.814, 0.795, 0.842, 0.851)),
    "E2": Environment("pima", ((300, 114), (200, 68), (268, 86)), (0.810, 0.846, 0.798, 0.860, 0.879)),
    "E3": Environment("pima", ((300, 107), (200, 73), (268, 88)), (0.852, 0.846, 0.808, 0.836, 0.859)),
    "E4": Environment("pima", ((100, 33), (250, 94), (280, 57), (138, 84)), (0.816, 0.854, 0.802, 0.878, 0.884)),
    "E5": Environment("pima", ((200, 64), (200, 74), (200, 68), (168, 62)), (0.802, 0.837, 0.780, 0.868, 0.873)),
    "E6": Environment("pima", ((100, 37), (250, 97), (300, 89), (118, 45)), (0.803, 0.830, 0.784, 0.859, 0.865)),
    "E7": Environment("retinopathy", ((651, 340), (500, 271)), (0.692, 0.706, 0.704, 0.744, 0.750)),
    "E8": Environment("retinopathy", ((400, 218), (300, 158), (451, 235)), (0.699, 0.742, 0.729, 0.752, 0.753)),
    "E9": Environment("retinopathy", ((651, 340), (300, 157), (200, 114)), (0.709, 0.758, 0.679, 0.790, 0.803)),
    "E10": Environment("saheart", ((90, 36), (372, 124)), (0.609, 0.657, 0.669, 0.776, 0.784)),
    "E11": Environment("saheart", ((200, 80), (150, 55), (112, 25)), (0.640, 0.691, 0.654, 0.726, 0.740)),
    "E12": Environment("saheart", ((150, 57), (150, 53), (162, 50)), (0.651, 0.683, 0.672, 0.715, 0.727)),
}


def heart_tables(folder: Path, *, empty_columns: bool = True) -> dict[str, pd.DataFrame]:
    """The four hospitals. Nobody has a cholesterol or a blood pressure of 0: there it means unknown.

    Without `empty_columns` a hospital lacks the columns of which it knows less than a tenth.
    """
    tables = {name: pd.read_csv(folder / f"heart_{name}.csv") for name in HOSPITALS}
    for table in tables.values():
        table[["chol", "trestbps"]] = table[["chol", "trestbps"]].replace(0, np.nan)
    if empty_columns:
        return tables
    return {name: table.loc[:, table.notna().mean() >= FILLED] for name, table in tables.items()}


def heart_study() -> Study:
    """Is there a narrowed coronary artery?"""
    features = (
        _continuous("age", 20, 80),
        Feature(name="sex", kind="binary"),
        _categorical("cp", "1", "2", "3", "4"),
        _continuous("trestbps", 80, 200),
        _continuous("chol", 80, 610),
        Feature(name="fbs", kind="binary"),
        _categorical("restecg", "0", "1", "2"),
        _continuous("thalach", 60, 210),
        Feature(name="exang", kind="binary"),
        _continuous("oldpeak", -3, 7),
        _categorical("slope", "1", "2", "3"),
        _continuous("ca", 0, 3),
        _categorical("thal", "3", "6", "7"),
    )
    return Study(name="heart", features=features, label=Label(name="num", positive=("1", "2", "3", "4")))


def environment_study(environment: Environment, table: pd.DataFrame) -> Study:
    """The study of one of the data sets; a 0 that means unknown in Pima stays 0, the publication says nothing of it."""
    label = LABELS[environment.data]
    features = tuple(_inferred(name, table[name]) for name in table.columns if name != label)
    privacy: Any = {"secure_sum": environment.secure_sum}
    return Study(name=environment.data, features=features, label=Label(name=label), privacy=privacy)


def dealt(table: pd.DataFrame, label: str, sites: Sequence[tuple[int, int]], seed: int) -> dict[str, pd.DataFrame]:
    """The data set dealt out at random to sites of the given rows and positives."""
    rng = np.random.default_rng([seed, 0xDEA1])
    positives, negatives = (rng.permutation(np.flatnonzero(table[label] == value)) for value in (1, 0))
    dealt_positives = np.split(positives, np.cumsum([yes for _, yes in sites])[:-1])
    dealt_negatives = np.split(negatives, np.cumsum([rows - yes for rows, yes in sites])[:-1])
    shares = zip(dealt_positives, dealt_negatives, strict=True)
    return {f"S{place}": table.iloc[np.sort(np.concatenate(share))] for place, share in enumerate(shares, start=1)}


def _inferred(name: str, values: pd.Series[Any]) -> Feature:
    if not pd.api.types.is_numeric_dtype(values):
        return _categorical(name, *sorted(values.unique()))
    if values.isin((0, 1)).all():
        return Feature(name=name, kind="binary")
    return _continuous(name, float(values.min()), float(values.max()))


def _continuous(name: str, low: float, high: float) -> Feature:
    return Feature(name=name, kind="continuous", range=(low, high))


def _categorical(name: str, *categories: str) -> Feature:
    return Feature(name=name, kind="categorical", categories=categories)
