"""What MLflow is told of a version's input comes from the study, and refuses no table."""

from __future__ import annotations

from spinney.connectors.mlflow.signature import input_example, signature, signature_of
from spinney.study.settings import Feature

FEATURES = (
    Feature(name="age", kind="continuous", unit="a", range=(18, 100)),
    Feature(name="nyha", kind="categorical", categories=("I", "II")),
    Feature(name="smoker", kind="binary"),
)


def test_the_example_is_nobody():
    assert input_example(FEATURES).to_dict("records") == [{"age": 59.0, "nyha": "I", "smoker": 0.0}]


def test_every_column_may_be_absent_and_of_any_type():
    """With a type, MLflow would refuse whole numbers where it was told of doubles, and quote the rows."""
    from mlflow.types.schema import AnyType

    told = signature(FEATURES)
    assert [one.name for one in told.inputs] == ["age", "nyha", "smoker"]
    assert not any(one.required for one in told.inputs)
    assert all(isinstance(one.type, AnyType) for one in told.inputs)
    assert told.outputs.input_names() == ["probability", "decision"]


def test_kinds_units_and_ranges_are_told_and_how_values_are_read_is_not():
    assert signature_of(FEATURES) == [
        {"name": "age", "kind": "continuous", "unit": "a", "range": [18.0, 100.0]},
        {"name": "nyha", "kind": "categorical", "categories": ["I", "II"]},
        {"name": "smoker", "kind": "binary"},
    ]
