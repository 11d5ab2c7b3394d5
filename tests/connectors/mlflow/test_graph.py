"""A model as ONNX gives our probabilities, with missing values and absent features."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from spinney.choice.model import FederatedForest
from spinney.connectors.mlflow import RegistryFailed
from spinney.connectors.mlflow.graph import TOLERANCE, made_up_rows, onnx_model, raw_values, write_onnx
from spinney.linear.design import Design
from spinney.linear.part import LinearPart
from spinney.trial.simulate import simulate
from tests.spinney.choice.over_time import cohort, study


@pytest.fixture(scope="module")
def model() -> FederatedForest:
    """Continuous and categorical features; trees of three houses, calibrated."""
    wood = study(forest={"trees": 12, "max_depth": 3})
    return simulate(wood, {name: cohort(wood, seed) for seed, name in enumerate("abc")}).outcomes["a"].model


def opened(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options)


def changed(model: FederatedForest, **changes) -> FederatedForest:
    kept = {"calibration": model.calibration_, "threshold": model.threshold_, "fill": model.fill_, **changes}
    return FederatedForest.from_trees(model.forest_, model.owners_, model.weights_, model.features_, **kept)


def test_it_is_written_once_it_agrees_with_our_own_walk(model, tmp_path: Path):
    assert write_onnx(model, tmp_path / "model.onnx") <= TOLERANCE
    session = opened(tmp_path / "model.onnx")
    rows = made_up_rows(model, 50)
    probability, decision = session.run(None, {"features": raw_values(rows, model.features_)})
    assert probability == pytest.approx(model.predict_proba(rows)[:, 1], abs=TOLERANCE)
    assert decision.tolist() == model.predict(rows).tolist()


def test_trees_that_ask_an_absent_feature_abstain(model, tmp_path: Path):
    write_onnx(model, tmp_path / "model.onnx")
    session = opened(tmp_path / "model.onnx")
    rows = made_up_rows(model, 50)
    inputs = {"features": raw_values(rows, model.features_), "present": np.array([True, False, True])}
    (said,) = session.run(["probability"], inputs)
    assert said == pytest.approx(model.predict_proba(rows.drop(columns="sex"))[:, 1], abs=TOLERANCE)
    assert np.abs(said - model.predict_proba(rows)[:, 1]).max() > 1e-3


@pytest.mark.parametrize(
    "changes",
    [{"calibration": None}, {"absent": "missing"}, {"fill": np.array([0.4, 1, 0, 0, np.nan], dtype=np.float32)}],
    ids=["not calibrated", "absent is missing", "with federated means"],
)
def test_it_follows_every_kind_of_model(model, tmp_path: Path, changes):
    assert write_onnx(changed(model, **changes), tmp_path / "model.onnx") <= TOLERANCE


LINEAR = LinearPart(
    Design(np.array([0, 1, 2, 4, 6]), np.full(5, 0.4), np.array([0.1, 0.3, 0.5, 0.2, 0.3]), 4),
    np.array([0.5, -1.0, 0.7, 0.3, -0.4]),
    -0.2,
    0.6,
    np.zeros(5),
    common=True,
)
NOTHING = LinearPart(
    Design(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 4), np.zeros(0), 0.3, 0.5, np.zeros(0), common=True
)


@pytest.mark.parametrize("part", [LINEAR, replace(LINEAR, forest=0.0), NOTHING])
@pytest.mark.parametrize("changes", [{}, {"calibration": None}])
def test_it_follows_a_logistic_regression_beside_the_trees(model, tmp_path: Path, part, changes):
    columns = len(model.columns_)
    places = part.design.places % (2 * columns)
    part = replace(part, design=replace(part.design, columns=columns, places=places))
    assert write_onnx(changed(model, linear=part, **changes), tmp_path / "model.onnx") <= TOLERANCE


def test_a_graph_that_says_something_else_is_not_written(model, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(
        "spinney.connectors.mlflow.graph.onnx_model", lambda _: onnx_model(changed(model, calibration=(2, 1)))
    )
    with pytest.raises(RegistryFailed, match=r"differs by .* from ours, so it is not written"):
        write_onnx(model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_it_names_the_model_and_its_features(model):
    told = {one.key: one.value for one in onnx_model(model).metadata_props}
    assert told == {"model_digest": model.digest, "features": "age,sex,marker"}
    onnx.checker.check_model(onnx_model(model), full_check=True)


def test_writing_a_model_reports_nothing_to_the_makers_of_the_library(model, tmp_path, monkeypatch):
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    write_onnx(model, tmp_path / "model.onnx")
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
