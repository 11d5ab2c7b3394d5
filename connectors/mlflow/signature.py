"""What MLflow tells about a version's input: made from the study alone, never from a patient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinney.study.settings import Feature

if TYPE_CHECKING:
    import pandas as pd


def signature(features: Sequence[Feature]) -> Any:
    """The columns by name; every one may be absent.

    Their types are left open: MLflow refuses whole numbers where it was told of doubles, and its refusal quotes the
    rows, which would put patients into logs. Kinds, units and ranges are in the version's metadata instead.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import AnyType

    inputs = Schema([ColSpec(AnyType(), feature.name, required=False) for feature in features])
    outputs = Schema([ColSpec(DataType.double, "probability"), ColSpec(DataType.long, "decision")])
    return ModelSignature(inputs=inputs, outputs=outputs)


def input_example(features: Sequence[Feature]) -> pd.DataFrame:
    """One row that nobody is: the middle of every range, the first category, no to every question."""
    import pandas as pd

    return pd.DataFrame({feature.name: [_middle(feature)] for feature in features})


def signature_of(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """Kinds, units and ranges."""
    kept = {"name", "kind", "unit", "range", "categories"}
    return [feature.model_dump(mode="json", include=kept, exclude_none=True) for feature in features]


def _middle(feature: Feature) -> float | str:
    if feature.categories:
        return feature.categories[0]
    return sum(feature.range) / 2 if feature.range else 0.0
