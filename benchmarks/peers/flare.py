"""A federated forest in NVIDIA FLARE's simulator: its XGBoost bagging recipe, one round of parallel trees per client.

Run by benchmarks/speed.py as `python flare.py CASE RESULT` with an interpreter that has `nvflare` and `xgboost`. Its
trees are XGBoost's (histograms, all features at every split, rows drawn without replacement), not scikit-learn's.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost as xgb
from nvflare.app_opt.xgboost.histogram_based_v2.csv_data_loader import CSVDataLoader
from nvflare.app_opt.xgboost.recipes import XGBBaggingRecipe
from nvflare.app_opt.xgboost.tree_based.executor import FedXGBTreeExecutor
from nvflare.recipe import SimEnv, set_per_site_config
from sklearn.metrics import roc_auc_score

construct = FedXGBTreeExecutor.__init__


@functools.wraps(construct)  # FLARE looks at the parameters' names
def keep_learning_rate(self, *words, learning_rate=0.1, **more):
    """The job is written from attributes named like parameters, and this one is stored under another name: without
    this every job runs with a learning rate of 0.1, whatever the recipe was told."""
    construct(self, *words, learning_rate=learning_rate, **more)
    self.learning_rate = learning_rate


def main() -> None:
    folder, result = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    case = json.loads((folder / "case.json").read_text())
    FedXGBTreeExecutor.__init__ = keep_learning_rate
    recipe = XGBBaggingRecipe(
        name="forest",
        min_clients=case["sites"],
        num_rounds=1,
        num_local_parallel_tree=case["trees"],
        local_subsample=0.63,  # as many different rows as a bootstrap holds
        learning_rate=1.0,
        max_depth=case["max_depth"],
        nthread=1,
    )
    names = [f"site-{number}" for number in range(1, case["sites"] + 1)]
    set_per_site_config(recipe, {name: {"data_loader": CSVDataLoader(folder=str(folder))} for name in names})
    workspace = result.parent / "workspace"
    # with fewer threads than clients it ends and starts the clients' processes again and again
    recipe.execute(SimEnv(clients=names, num_threads=len(names), workspace_root=str(workspace)))
    model = next(workspace.rglob("xgboost_model.json"))
    booster = xgb.Booster(model_file=str(model))
    table = pd.read_csv(folder / "held_out.csv", header=None).to_numpy(dtype=np.float32)
    score = float(roc_auc_score(table[:, 0], booster.predict(xgb.DMatrix(table[:, 1:]))))
    trees = len(json.loads(model.read_text())["learner"]["gradient_booster"]["model"]["trees"])
    result.write_text(json.dumps({"auroc": score, "trees": trees, "sent": model.stat().st_size, "fetched": None}))


if __name__ == "__main__":
    main()
