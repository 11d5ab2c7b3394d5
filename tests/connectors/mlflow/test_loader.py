"""What MLflow loads: the same probabilities, for whatever table it is given."""

from __future__ import annotations

import pandas as pd
import pytest

from spinney.choice.saved import ModelRefused
from tests.connectors.mlflow.registered import frame, register


def test_mlflow_loads_the_champion_by_its_alias(registry, wood):
    import mlflow

    version = register(registry, wood)
    registry.promote("wood", version.number)
    mlflow.set_tracking_uri(registry.store.tracking)
    rows = frame()
    said = mlflow.pyfunc.load_model("models:/wood@champion").predict(rows)
    model = wood.outcomes["elm"].model
    assert said["probability"].to_numpy() == pytest.approx(model.predict_proba(rows)[:, 1], abs=0)
    assert said["decision"].tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"x0": [1, 0], "x1": [0, 1]}),
        pd.DataFrame({"x0": pd.array([1, None], dtype="Int64"), "x1": [True, False]}),
        pd.DataFrame({"x0": [0.5, None], "a note": ["not asked", "for"], "x1": [0.5, 0.5]}),
    ],
    ids=["whole numbers and absent columns", "missing and yes or no", "other columns"],
)
def test_a_table_needs_no_special_types_to_be_scored(registry, wood, rows):
    from mlflow import pyfunc

    version = register(registry, wood)
    folder = registry.store.client.download_artifacts(version.run, "model")
    assert pyfunc.load_model(folder).predict(rows)["probability"].between(0, 1).all()


def test_a_version_whose_files_are_gone_says_what_to_do(registry, wood, tmp_path):
    version = register(registry, wood)
    next((tmp_path / "registry").rglob("forest.spny")).unlink()
    with pytest.raises(ModelRefused, match="cannot be read"):
        registry.model(version)
