"""A version as ONNX, for systems that run no Python of ours: the whole way from raw values to probability and decision.

    input   features     N x F  double   raw values in the study's order; NaN: missing; a category: its place from 0
    input   present      F      bool     which features the system has at all (default: all); the others are
                                missing, or trees that ask them abstain, as the study says
    output  probability  N      double
    output  decision     N      int64

Thresholds stay doubles, as in our own walk; leaves are single precision, which costs less than 1e-7.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spinney.choice.metrics import CLIP
from spinney.choice.model import FederatedForest
from spinney.connectors.mlflow.store import RegistryFailed
from spinney.forest.tree import LEAF, right_children
from spinney.linear.design import FARTHEST
from spinney.linear.part import LinearPart
from spinney.study.settings import Feature

TOLERANCE = 1e-6
CHECKED_ROWS = 500
DOUBLE, INT64, BOOL = 11, 7, 9  # ONNX's names of types


def write_onnx(model: FederatedForest, path: Path) -> float:
    """Write a model and compare it with ours on made-up rows; says the largest difference that was found."""
    try:
        import onnx

        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported, and else it reports to its makers
        import onnxruntime
    except ImportError as error:
        raise RegistryFailed(f"ONNX needs the package {error.name}: install spinney[onnx]") from None
    made = onnx_model(model)
    onnx.checker.check_model(made, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns that `present` has a default
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    largest = largest_difference(model, session)
    if not largest <= TOLERANCE:
        raise RegistryFailed(f"the ONNX model differs by {largest:.1e} from ours, so it is not written; report this")
    path.write_bytes(made.SerializeToString())
    return largest


class Graph:
    """Nodes and constants, by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, kind: Any = np.float64, name: str = "") -> str:
        from onnx import numpy_helper

        name = name or f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=kind), name))
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        from onnx import helper

        name = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def onnx_model(model: FederatedForest) -> Any:
    """The graph of a model."""
    from onnx import helper

    graph, names = Graph(), [feature.name for feature in model.features_]
    of_column = graph.constant([names.index(column.feature.name) for column in model.columns_], np.int64)
    here = graph.add("Gather", "present", of_column)
    matrix = _columns(graph, model, graph.add("Gather", "features", of_column, axis=1), here)
    weights = _weights(graph, model, here)
    share = graph.add(
        "Div", graph.add("MatMul", _votes(graph, model, matrix), weights), graph.add("ReduceSum", weights)
    )
    if model.linear_ is not None:
        share = _beside(graph, model.linear_, share, _terms(graph, model.linear_, matrix, here))
    _calibrated(graph, model, share)
    above = graph.add("GreaterOrEqual", "probability", graph.constant(model.threshold_))
    graph.add("Cast", above, name="decision", to=INT64)
    graph.constant(np.ones(len(names)), np.bool_, name="present")
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        graph.nodes,
        "spinney",
        [info("features", DOUBLE, [None, len(names)]), info("present", BOOL, [len(names)])],
        [info("probability", DOUBLE, [None]), info("decision", INT64, [None])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(body, opset_imports=opsets, ir_version=8, producer_name="spinney")
    helper.set_model_props(made, {"model_digest": model.digest, "features": ",".join(names)})
    return made


def _columns(graph: Graph, model: FederatedForest, raw: str, here: str) -> str:
    """The study's columns, scaled and filled as `spinney.rows.encode` does it, in single precision."""
    columns = model.columns_
    ranges = [column.feature.range or (0.0, 1.0) for column in columns]
    low, high = (graph.constant([one[end] for one in ranges]) for end in (0, 1))
    places = [(c.feature.categories or ()).index(c.category) if c.category is not None else -1 for c in columns]
    most = [len(c.feature.categories) - 1 if c.feature.categories else 1 for c in columns]
    nothing = graph.constant(np.nan)
    unknown = graph.add("Or", graph.add("IsNaN", raw), graph.add("IsInf", raw))
    value = graph.add("Where", unknown, graph.constant(0.0), raw)
    inside = graph.add("Min", graph.add("Max", value, low), high)
    scaled = graph.add("Div", graph.add("Sub", inside, low), graph.add("Sub", high, low))
    is_place = graph.add("Cast", graph.add("Equal", value, graph.constant(places)), to=DOUBLE)
    beyond = graph.add(
        "Or",
        graph.add("Less", value, graph.constant(0.0)),
        graph.add("Greater", value, graph.constant(np.array(most, dtype=np.float64))),
    )
    whole = graph.add("Equal", value, graph.add("Floor", value))
    wrong = graph.add("Or", beyond, graph.add("Not", whole))
    continuous = graph.constant([column.feature.range is not None for column in columns], np.bool_)
    categorical = graph.constant([column.category is not None for column in columns], np.bool_)
    wrong = graph.add("And", wrong, graph.add("Not", continuous))
    said = graph.add("Where", categorical, is_place, graph.add("Where", continuous, scaled, value))
    said = graph.add("Where", graph.add("Or", unknown, wrong), nothing, said)
    said = graph.add("Where", here, _filled(graph, model, said, here), nothing)
    return graph.add("Cast", graph.add("Cast", said, to=1), to=DOUBLE)


def _filled(graph: Graph, model: FederatedForest, said: str, here: str) -> str:
    if model.fill_ is None:
        return said
    gap = graph.add("And", graph.add("IsNaN", said), here)
    return graph.add("Where", gap, graph.constant(model.fill_.astype(np.float64)), said)


def _votes(graph: Graph, model: FederatedForest, matrix: str) -> str:
    """Every tree's probability, one column each: a target per tree, so that trees can abstain."""
    from onnx import numpy_helper

    forest = model.forest_
    split, sizes = forest.feature != LEAF, forest.ends - forest.starts
    tree, first = np.repeat(np.arange(len(forest)), sizes), np.repeat(forest.starts, sizes)
    node = np.arange(len(forest.feature)) - first
    right = right_children(forest.feature) - first
    attributes = {
        "nodes_treeids": tree,
        "nodes_nodeids": node,
        "nodes_featureids": np.where(split, forest.feature, 0),
        "nodes_truenodeids": np.where(split, node + 1, 0),
        "nodes_falsenodeids": np.where(split, right, 0),
        "nodes_missing_value_tracks_true": (split & forest.missing_left).astype(int),
        "target_treeids": tree[~split],
        "target_nodeids": node[~split],
        "target_ids": tree[~split],
    }
    votes = graph.add(
        "TreeEnsembleRegressor",
        matrix,
        domain="ai.onnx.ml",
        n_targets=len(forest),
        aggregate_function="SUM",
        nodes_modes=["BRANCH_LEQ" if one else "LEAF" for one in split],
        nodes_values_as_tensor=numpy_helper.from_array(forest.threshold.astype(np.float64), "thresholds"),
        target_weights_as_tensor=numpy_helper.from_array(forest.probability[~split].astype(np.float64), "leaves"),
        **{name: values.astype(int).tolist() for name, values in attributes.items()},
    )
    return graph.add("Cast", votes, to=DOUBLE)


def _weights(graph: Graph, model: FederatedForest, here: str) -> str:
    """Weights of the trees; 0 where one asks a feature that is not there, unless it is walked as missing."""
    if model.absent_ == "missing":
        return graph.constant(model.weights_)
    asks = graph.constant(model.forest_.uses(len(model.columns_)))
    absent = graph.add("Cast", graph.add("Not", here), to=DOUBLE)
    silent = graph.add("Greater", graph.add("MatMul", asks, absent), graph.constant(0.0))
    return graph.add("Where", silent, graph.constant(0.0), graph.constant(model.weights_))


def _terms(graph: Graph, part: LinearPart, matrix: str, here: str) -> str:
    """The standardised columns of a linear part, as `spinney.linear.design` makes them."""
    design = part.design
    column = graph.constant(design.places % design.columns, np.int64)
    absent = graph.add("Gather", graph.add("Not", here), column)
    values = graph.add("Gather", matrix, column, axis=1)
    unknown = graph.add("Or", graph.add("IsNaN", values), absent)
    mean = graph.constant(design.mean)
    gaps = graph.constant(design.places >= design.columns, np.bool_)
    known = graph.add("Where", unknown, mean, values)
    told = graph.add("Where", gaps, graph.add("Cast", unknown, to=DOUBLE), known)
    scaled = graph.add("Div", graph.add("Sub", told, mean), graph.constant(design.deviation))
    return graph.add("Min", graph.add("Max", scaled, graph.constant(-FARTHEST)), graph.constant(FARTHEST))


def _beside(graph: Graph, part: LinearPart, share: str, terms: str) -> str:
    """The vote of the trees and what the linear part adds to its log-odds, as one vote."""
    if len(part.design):
        added = graph.add("MatMul", terms, graph.constant(part.coefficients))
    else:
        added = graph.add("Mul", share, graph.constant(0.0))
    line = graph.add("Add", added, graph.constant(part.intercept))
    if part.forest:
        line = graph.add("Add", line, graph.add("Mul", _log_odds(graph, share), graph.constant(part.forest)))
    return graph.add("Sigmoid", line)


def _log_odds(graph: Graph, share: str) -> str:
    p = graph.add("Min", graph.add("Max", share, graph.constant(CLIP)), graph.constant(1 - CLIP))
    return graph.add("Log", graph.add("Div", p, graph.add("Sub", graph.constant(1.0), p)))


def _calibrated(graph: Graph, model: FederatedForest, share: str) -> None:
    share = graph.add("Min", graph.add("Max", share, graph.constant(0.0)), graph.constant(1.0))
    if model.calibration_ is None:
        graph.add("Identity", share, name="probability")
        return
    slope, intercept = model.calibration_
    line = graph.add("Mul", _log_odds(graph, share), graph.constant(slope))
    graph.add("Sigmoid", graph.add("Add", line, graph.constant(intercept)), name="probability")


# ---------------------------------------------------------------------------------------------------------------
# The comparison with our own walk


def largest_difference(model: FederatedForest, session: Any) -> float:
    """On rows that nobody is, with missing and impossible values, and with features that are not there."""
    rows = made_up_rows(model)
    differences = [0.0]
    for present in _presences(model):
        here = rows.loc[:, present]
        asks_absent = model.forest_.uses(len(model.columns_))[:, ~_of_columns(model, present)].any(axis=1)
        if model.absent_ == "abstain" and not model.weights_[~asks_absent].any():
            continue
        said = session.run(["probability"], {"features": raw_values(rows, model.features_), "present": present})[0]
        differences.append(float(np.abs(said - model.predict_proba(here)[:, 1]).max()))
    return max(differences) if not np.isnan(differences).any() else float("nan")


def made_up_rows(model: FederatedForest, rows: int = CHECKED_ROWS) -> pd.DataFrame:
    """Values in and around the study's ranges, a tenth missing."""
    rng = np.random.default_rng(0)
    table = {}
    for feature in model.features_:
        if feature.categories:
            values: Any = rng.choice(np.array([*feature.categories, "none of these"], dtype=object), rows)
        elif feature.range:
            low, high = feature.range
            values = rng.uniform(low - (high - low) / 10, high + (high - low) / 10, rows)
        else:
            values = rng.choice([0.0, 1.0, 2.0], rows, p=[0.45, 0.45, 0.1])
        gaps = rng.random(rows) < 0.1
        table[feature.name] = [None if gap else value for gap, value in zip(gaps, values, strict=True)]
    return pd.DataFrame(table)


def raw_values(frame: pd.DataFrame, features: tuple[Feature, ...]) -> NDArray[np.float64]:
    """A data frame as the graph's input."""
    columns = []
    for feature in features:
        values = frame[feature.name]
        if feature.categories:
            place = {word: float(at) for at, word in enumerate(feature.categories)}
            values = values.map(lambda word, place=place: place.get(word, np.nan))
        columns.append(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.stack(columns, axis=1)


def _presences(model: FederatedForest) -> Iterator[NDArray[np.bool_]]:
    """All features, then all but each of the first twenty, then every second."""
    features = len(model.features_)
    yield np.ones(features, dtype=bool)
    for absent in range(min(features, 20)):
        yield np.arange(features) != absent
    yield np.arange(features) % 2 == 0


def _of_columns(model: FederatedForest, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    there = {feature.name for feature, here in zip(model.features_, present, strict=True) if here}
    return np.array([column.feature.name in there for column in model.columns_])
