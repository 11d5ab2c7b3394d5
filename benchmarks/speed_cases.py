"""The federations of benchmarks/speed.py, written so that every system reads the same rows from CSV files.

study.yaml, tables/site-1.csv ...      for spinney, which keeps a quarter of every site's rows for measuring
site-1/train.csv, valid.csv ...        for the others: exactly the rows that spinney trains on, and that quarter
held_out.csv                           rows that nobody gets, on which all models are measured
case.json                              sizes
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, make_classification

from spinney.configuration.study_file import write_study
from spinney.rows.cohort import cohort_from_frame
from spinney.rows.parts import Part
from spinney.study.study import Study

LABEL = "y"
SITES = 4
COLUMNS = 30


@dataclass(frozen=True)
class Case:
    """What is grown, on what."""

    name: str
    trees: int  # per site
    rows: int = 0  # at the sites together; 0: breast cancer
    held_out: int = 0
    max_depth: int = 12
    min_samples_leaf: int = 5

    @property
    def told(self) -> str:
        rows = f"{self.rows:,} x {COLUMNS} made-up rows" if self.rows else "breast cancer"
        return f"{rows}, {SITES} sites x {self.trees} trees of depth {self.max_depth}"

    def write(self, folder: Path) -> Path:
        """All files."""
        table = made_up(self.rows + self.held_out) if self.rows else breast_cancer()
        held_out = self.held_out or len(table) // 5
        study = self.study(table)
        (folder / "tables").mkdir(parents=True)
        write_study(study, folder / "study.yaml")
        _bare(table.iloc[:held_out], folder / "held_out.csv")
        for number in range(SITES):
            mine = table.iloc[held_out + number :: SITES]
            mine.to_csv(folder / "tables" / f"site-{number + 1}.csv", index=False, float_format="%.6g")
            # from the file, as spinney will read it
            part = cohort_from_frame(pd.read_csv(folder / "tables" / f"site-{number + 1}.csv"), study).part
            (folder / f"site-{number + 1}").mkdir()
            for name, wanted in (("train", Part.TRAINING), ("valid", Part.TEST)):
                _bare(mine[part == wanted], folder / f"site-{number + 1}" / f"{name}.csv")
        sizes = {"trees": self.trees, "max_depth": self.max_depth, "min_samples_leaf": self.min_samples_leaf}
        words = {"sites": SITES, "cores": os.cpu_count() or 1, **sizes}
        (folder / "case.json").write_text(json.dumps(words), encoding="utf-8")
        return folder

    def study(self, table: pd.DataFrame) -> Study:
        """Default settings but for the size of the forest."""
        forest = {"trees": self.trees, "max_depth": self.max_depth, "min_samples_leaf": self.min_samples_leaf}
        features = [
            {"name": name, "kind": "continuous", "range": [0.0, float(np.ceil(table[name].max() * 1.1 * 1e3) / 1e3)]}
            for name in table.columns
            if name != LABEL
        ]
        return Study.model_validate({"name": "speed", "features": features, "label": {"name": LABEL}, "forest": forest})


def breast_cancer() -> pd.DataFrame:
    """The public data set in a fixed random order; the label comes first."""
    data = load_breast_cancer(as_frame=True)
    table = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    table.insert(0, LABEL, 1 - data.target)
    return table.sample(frac=1, random_state=7)


def made_up(rows: int) -> pd.DataFrame:
    """Ten features that matter, twenty that don't, and noisy labels."""
    X, y = make_classification(rows, COLUMNS, n_informative=10, flip_y=0.1, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    table = pd.DataFrame(X, columns=[f"x{number}" for number in range(COLUMNS)])
    table.insert(0, LABEL, y)
    return table


def _bare(table: pd.DataFrame, file: Path) -> None:
    """No heading, label first: the form that FLARE's own loader reads."""
    table.to_csv(file, index=False, header=False, float_format="%.6g")
