"""A model as two pieces of plain data: words in JSON, trees as checked arrays. Nothing is ever unpickled.

Opening checks everything before it is used: the words against a schema, the trees as if another house had sent them,
and both together against the digest, so that a model that opens gives the answers of the one that was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from spinney.base import Name, Settings
from spinney.errors import Refused
from spinney.forest import codec
from spinney.forest.export import Rounding, grid_of
from spinney.linear.design import Design
from spinney.linear.part import LinearPart
from spinney.rows.encode import columns_of
from spinney.study.settings import Absent, Feature

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest

LIMITS = codec.TreeLimits(trees=1_000_000, depth=32, nodes=64_000_000)
Finite = Annotated[float, Field(allow_inf_nan=False)]


class ModelRefused(Refused):
    """A saved model is not what it was when it was saved."""


class LinearDescription(Settings):
    """A logistic regression as part of a model: a number per column of its design."""

    places: tuple[Annotated[int, Field(ge=0)], ...]
    mean: tuple[Finite, ...]
    deviation: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]
    coefficients: tuple[Finite, ...]
    fitted: tuple[Finite, ...]
    intercept: Finite
    forest: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    common: bool

    @classmethod
    def of(cls, part: LinearPart) -> LinearDescription:
        """As it is saved."""
        design = part.design
        return cls(
            places=tuple(design.places.tolist()),
            mean=tuple(design.mean.tolist()),
            deviation=tuple(design.deviation.tolist()),
            coefficients=tuple(part.coefficients.tolist()),
            fitted=tuple(part.fitted.tolist()),
            intercept=part.intercept,
            forest=part.forest,
            common=part.common,
        )

    def part(self, columns: int) -> LinearPart:
        """Of a model with so many encoded columns."""
        mean, deviation = np.array(self.mean, dtype=np.float64), np.array(self.deviation, dtype=np.float64)
        design = Design(np.array(self.places, dtype=np.int64), mean, deviation, columns)
        coefficients, fitted = (np.array(one, dtype=np.float64) for one in (self.coefficients, self.fitted))
        return LinearPart(design, coefficients, self.intercept, self.forest, fitted, self.common)


class ModelDescription(Settings):
    """Everything about a model but its trees."""

    format: Literal[1] = 1
    digest: str = Field(description="Of the whole model; two models with one digest give the same answers.")
    features: tuple[Feature, ...] = Field(min_length=1)
    probability_precision: float = Field(gt=0, le=1)
    owners: tuple[Name, ...] = Field(min_length=1, description="Which house each tree comes from.")
    weights: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...]
    calibration: tuple[Finite, Finite] | None
    threshold: Finite
    fill: tuple[Finite | None, ...] | None = Field(
        None, description="What stands for a missing value of each column; null: nothing."
    )
    absent: Absent = Field("abstain", description="What a tree does that asks a column which a table doesn't have.")
    linear: LinearDescription | None = Field(None, description="The logistic regression beside the trees.")

    @model_validator(mode="after")
    def _one_weight_per_tree(self) -> Self:
        if len(self.weights) != len(self.owners) or not any(self.weights):
            raise ValueError("one weight per tree is needed, and one above 0")
        if self.fill is not None and len(self.fill) != len(columns_of(self.features)):
            raise ValueError("one value to fill with is needed per column")
        return self

    @property
    def rounding(self) -> Rounding:
        """The grid on which the trees' numbers lie."""
        return grid_of(columns_of(self.features), self.probability_precision)


def save(model: FederatedForest, probability_precision: float) -> tuple[ModelDescription, bytes]:
    """The words and the trees of a federation's model, whose probabilities have the study's precision."""
    words = ModelDescription(
        digest=model.digest,
        features=model.features_,
        probability_precision=probability_precision,
        owners=model.owners_,
        weights=tuple(model.weights_.tolist()),
        calibration=model.calibration_,
        threshold=model.threshold_,
        fill=None if model.fill_ is None else tuple(None if one != one else one for one in model.fill_.tolist()),
        absent=model.absent_,
        linear=None if model.linear_ is None else LinearDescription.of(model.linear_),
    )
    return words, codec.pack_forest(model.forest_, words.rounding)


def read_words(text: bytes) -> ModelDescription:
    """The words, if they are a model's."""
    try:
        return ModelDescription.model_validate_json(text)
    except ValidationError as error:
        places = sorted({str(mistake["loc"][0]) for mistake in error.errors() if mistake["loc"]})
        raise ModelRefused(f"this is no saved model: {', '.join(places) or 'not JSON'}") from None


def restore(words: ModelDescription, trees: bytes) -> FederatedForest:
    """The model that was saved, or ModelRefused or TreeRefused with the reason."""
    from spinney.choice.model import FederatedForest  # late, as in grow.py

    forest = codec.unpack_forest(trees, words.rounding, LIMITS)
    if len(forest) != len(words.owners):
        raise ModelRefused(f"{len(words.owners)} trees are described and {len(forest)} are there")
    model = FederatedForest.from_trees(
        forest,
        words.owners,
        np.array(words.weights),
        words.features,
        calibration=words.calibration,
        threshold=words.threshold,
        fill=None if words.fill is None else np.array(words.fill, dtype=np.float32),  # None becomes NaN
        absent=words.absent,
        linear=None if words.linear is None else words.linear.part(len(columns_of(words.features))),
    )
    if model.digest != words.digest:
        raise ModelRefused("the saved model was changed: its digest is another")
    return model
