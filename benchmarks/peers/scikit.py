"""The floor: every site's forest by scikit-learn in one process, all trees with equal votes.

Run by benchmarks/speed.py as `python scikit.py CASE RESULT`, like its neighbours, with an interpreter of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score


def rows(file: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(file, header=None).to_numpy(dtype=np.float32)
    return table[:, 1:], table[:, 0].astype(int)


def grown(case: dict, folder: Path, jobs: int, seed: int) -> RandomForestClassifier:
    """The forest of one site."""
    settings = {name: case[name] for name in ("max_depth", "min_samples_leaf")}
    forest = RandomForestClassifier(case["trees"], max_features="sqrt", n_jobs=jobs, random_state=seed, **settings)
    return forest.fit(*rows(folder / "train.csv"))


def auroc(trees: list, held_out: Path) -> float:
    X, y = rows(held_out)
    return float(roc_auc_score(y, np.mean([tree.predict_proba(X)[:, 1] for tree in trees], axis=0)))


def main() -> None:
    folder, result = Path(sys.argv[1]), Path(sys.argv[2])
    case = json.loads((folder / "case.json").read_text())
    trees = []
    for number in range(1, case["sites"] + 1):
        trees += grown(case, folder / f"site-{number}", case["cores"], number).estimators_
    score = auroc(trees, folder / "held_out.csv")
    result.write_text(json.dumps({"auroc": score, "trees": len(trees), "sent": None, "fetched": None}))


if __name__ == "__main__":
    main()
