"""A table becomes a matrix: the study's columns in the study's order, scaled by the study's ranges.

Continuous features are scaled to 0..1 by the range that all sites signed, never by a site's own minimum and maximum.
A category becomes one column each. A feature that a site doesn't have is a column of NaN that is not `present`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import CohortRejected
from spinney.rows.read_as import reader
from spinney.study.settings import Feature, Label

Matrix = NDArray[np.float32]
INDEX_TIME = "index_time"
DEFAULT_POSITIVE: tuple[str, ...] = Label.model_fields["positive"].default
PLAIN_ANSWERS = {word.lower() for word in DEFAULT_POSITIVE} | {"0", "0.0", "no", "false"}


@dataclass(frozen=True)
class Column:
    """One column of the matrix. Trees cut it at one of `cuts`; the last is 1, which parts known from missing."""

    name: str
    feature: Feature
    category: str | None
    cuts: tuple[float, ...]


def columns_of(features: Sequence[Feature]) -> tuple[Column, ...]:
    """The matrix columns of a study, in order."""
    columns: list[Column] = []
    for feature in features:
        cuts = feature.scaled_cuts
        if feature.categories:
            columns += [Column(f"{feature.name}={value}", feature, value, cuts) for value in feature.categories]
        else:
            columns.append(Column(feature.name, feature, None, cuts))
    return tuple(columns)


def encode(frame: Any, columns: Sequence[Column]) -> tuple[Matrix, NDArray[np.bool_]]:
    """The matrix of a data frame, and which columns the frame has at all."""
    matrix = np.full((len(frame), len(columns)), np.nan, dtype=np.float32)
    names = set(map(str, frame.columns))
    present = np.array([column_in(column.feature, names) is not None for column in columns])
    read, raw = "", np.empty(0)  # one feature at a time: all of them would be twice the matrix
    for index, column in enumerate(columns):
        if present[index]:
            if column.feature.name != read:
                read, raw = column.feature.name, _raw_values(frame, column.feature)
            matrix[:, index] = _scaled(raw, column)
    return matrix, present


def filled(matrix: Matrix, present: NDArray[np.bool_], fill: Matrix) -> Matrix:
    """The matrix with something for every missing value, where there is something; absent columns stay absent."""
    return np.where(np.isnan(matrix) & present, fill, matrix)


def column_in(one: Feature | Label, names: Collection[str]) -> str | None:
    """What a table calls a feature or the label: its name, or else its column; None if the table has neither."""
    return next((called for called in (one.name, one.column) if called in names), None)


def encode_label(frame: Any, label: Label) -> NDArray[np.int8]:
    """1 where the label means yes, 0 elsewhere; an unknown outcome is an error, not a no."""
    there = column_in(label, set(map(str, frame.columns)))
    if there is None:
        advice = "add the column or mend label.name and label.column in the study"
        raise CohortRejected(f"label {label.name} is a column", advice=advice)
    words = texts(np.asarray(_column(frame, there), dtype=object))
    unknown = int(sum(word is None for word in words))
    if unknown:
        raise CohortRejected(f"label {label.name} is known", unknown, "leave rows without an outcome out of the table")
    said = {word for word in words if word is not None}
    positive = {*label.positive}
    if label.positive == DEFAULT_POSITIVE:
        if strange := {word.lower() for word in said} - PLAIN_ANSWERS:
            advice = f"say in label.positive which of the {len(said)} values mean yes"
            raise CohortRejected(f"label {label.name} is yes or no", len(strange), advice)
        positive = {word for word in said if word.lower() in positive}  # Yes and YES are yes, too
    return np.isin(np.asarray(words, dtype=object), list(positive)).astype(np.int8)


def times_of(frame: Any) -> NDArray[np.int64]:
    """Index times in microseconds; an unknown one is older than all others."""
    advice = "give every row its time, such as 2024-05-17, or set split.newest to 0"
    if INDEX_TIME not in set(map(str, frame.columns)):
        raise CohortRejected(f"{INDEX_TIME} is a column", advice=advice)
    values = _column(frame, INDEX_TIME)
    try:
        if values.dtype.kind != "M":
            words = texts(np.asarray(values, dtype=object))
            plain = {word: _without_zone(word) if word else "NaT" for word in {*words}}
            values = np.asarray([plain[word] for word in words], dtype=str)
        times = values.to_numpy(dtype="M8[us]") if hasattr(values, "to_numpy") else values.astype("M8[us]")
    except ValueError:
        raise CohortRejected(f"{INDEX_TIME} is a time", advice=advice) from None
    return np.asarray(times).astype(np.int64)


def _without_zone(word: str) -> str:
    """A moment as it is called in UTC; one that names no zone is left as it is."""
    _, apart, clock = word.replace(" ", "T", 1).partition("T")
    if not apart or not (clock.endswith("Z") or {"+", "-"} & {*clock}):
        return word
    return datetime.fromisoformat(word).astimezone(UTC).replace(tzinfo=None).isoformat()


def texts(values: NDArray[Any]) -> list[str | None]:
    """Values as words: 1, 1.0, True and "1" are the same word; missing or blank is None."""
    known = {value: _text(value) for value in {*values.tolist()}}
    return [known.get(value) for value in values.tolist()]


def _text(value: Any) -> str | None:
    if value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value:
        return None
    if isinstance(value, (Integral, np.bool_)):
        return str(int(value))
    if isinstance(value, (Real, Decimal)) and float(value).is_integer():
        return str(int(float(value)))
    return str(value).strip() or None


def _column(frame: Any, name: str) -> Any:
    values = frame[name]
    if values.ndim != 1:
        raise CohortRejected(f"{name} is one column", advice="rename or drop the others of this name")
    return values


def _raw_values(frame: Any, feature: Feature) -> NDArray[np.float64]:
    """Numbers as they are, categories as their places in the study; NaN where missing or not allowed."""
    values = _column(frame, column_in(feature, set(map(str, frame.columns))) or feature.name)
    if feature.read_as and values.dtype.kind not in "fiub":
        read = reader(feature.read_as, feature.categories)
        meant = {word: read(word) for word in {*texts(np.asarray(values, dtype=object))}}
        values = np.array([meant[word] for word in texts(np.asarray(values, dtype=object))], dtype=object)
        if not feature.categories:
            return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
    if feature.categories:
        place: dict[str | None, int] = {word: at for at, word in enumerate(feature.categories)}
        words = texts(np.asarray(values, dtype=object))
        return np.array([place.get(word, np.nan) for word in words], dtype=np.float64)
    try:
        if values.dtype.kind in "mM":
            raise TypeError("a time is no number")
        pandas = hasattr(values, "to_numpy")  # a pandas column knows what its own missing values are
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan) if pandas else np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CohortRejected(f"{feature.name} is a number", advice=f"the study says {feature.kind}") from None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _scaled(values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
    if column.category is not None:
        place = (column.feature.categories or ()).index(column.category)
        return np.where(np.isnan(values), np.nan, values == place)
    if column.feature.range is not None:
        low, high = column.feature.range
        return np.asarray((np.clip(values, low, high) - low) / (high - low))
    return np.where((values == 0) | (values == 1), values, np.nan)
