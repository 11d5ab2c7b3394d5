"""A sent message as a person reads it: a tree as text, the vector as a table, hidden counts as what they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.federation.seam import Message, Parcel
from spinney.forest.codec import TreeLimits, unpack_forest
from spinney.forest.export import grid_of
from spinney.forest.tree import LEAF, Forest
from spinney.house import encoding as wire
from spinney.house.audit import what_is
from spinney.house.round_messages import Ask, Opening, Over
from spinney.rows.encode import Column, columns_of
from spinney.study.study import Study

SHOWN = 8  # numbers of an array that says nothing to a reader
SIGNED: Mapping[str, type[Any]] = {"Opening": Opening, "Over": Over}


def message_lines(study: Study, kind: str, content: bytes, tree: int = 1) -> list[str]:
    """All of a message that a house has sent under this study. Of a forest, one tree; the others are as long.

    Raises Refused for what is no such message.
    """
    if kind == "Parcel":
        return _forest_lines(study, content, tree)
    if kind in SIGNED:
        return [*_fields(study, wire.unpack(content, SIGNED[kind]))]
    if kind == "Ask":
        return [*_asked(study, wire.unpack(wire.unsqueeze(content), Ask))]
    return [*_fields(study, wire.decode_message(wire.unsqueeze(content)))]


def tree_lines(tree: Forest, columns: Sequence[Column], outcome: str) -> list[str]:
    """One tree as questions: a row goes where the question is true, and where nothing is known, where it says so."""
    lines, waiting, depth = [], [""], 0
    for node in range(len(tree.feature)):
        before = waiting.pop()
        depth = before.count("\t")
        if before.strip("\t"):
            lines.append("  " * depth + before.strip("\t"))
            depth += 1
        if tree.feature[node] == LEAF:
            lines.append("  " * depth + f"{outcome}: {100 * tree.probability[node]:.4g} %")
            continue
        column, threshold = columns[tree.feature[node]], float(tree.threshold[node])
        left, right = _questions(column, threshold, missing_left=bool(tree.missing_left[node]))
        waiting += ["\t" * depth + f"if {right}:", "\t" * depth + f"if {left}:"]
    return lines


def _questions(column: Column, threshold: float, *, missing_left: bool) -> tuple[str, str]:
    """What is true of a row that goes left, and of one that goes right."""
    feature = column.feature
    if threshold >= 1 and not missing_left:  # the end of the range, which no value is above
        return f"{feature.name} is known", f"{feature.name} is unknown"
    left, right = _about_values(column, threshold)
    return (f"{left} or unknown", right) if missing_left else (left, f"{right} or unknown")


def _about_values(column: Column, threshold: float) -> tuple[str, str]:
    feature = column.feature
    if column.category is not None:
        return f"{feature.name} is not {column.category}", f"{feature.name} is {column.category}"
    if feature.range is None:
        return f"{feature.name} is no", f"{feature.name} is yes"
    low, high = feature.range
    value = f"{low + threshold * (high - low):.6g}" + (f" {feature.unit}" if feature.unit else "")
    return f"{feature.name} is at most {value}", f"{feature.name} is above {value}"


def _forest_lines(study: Study, content: bytes, tree: int) -> list[str]:
    columns = columns_of(study.features)
    grid = grid_of(columns, study.privacy.probability_precision)
    forest = unpack_forest(content, grid, TreeLimits.of(study.forest))
    if not len(forest):
        return ["no trees: too few patients train here to lend any"]
    place = min(max(tree, 1), len(forest))
    head = f"{len(forest)} trees of {len(forest.feature)} nodes; no counts and no patient. Tree {place}:"
    return [head, "", *tree_lines(forest[place - 1], columns, study.label.name)]


def _asked(study: Study, ask: Ask) -> Iterator[str]:
    yield f"step: {ask.step}, attempt {ask.attempt}"
    for order in ask.orders:
        message = wire.decode_message(order.content)
        yield f"to {', '.join(order.sites)}: {what_is(type(message).__name__)}"
        yield from (f"  {line}" for line in _fields(study, message))
    for name, card in ask.cards.items():
        yield f"card of {name}"
        yield from (f"  {line}" for line in _fields(study, card))


def _fields(study: Study, message: Message | Any) -> Iterator[str]:
    for field in dataclasses.fields(message):
        yield from _field(study, field.name, getattr(message, field.name))


def _field(study: Study, name: str, value: Any) -> Iterator[str]:
    words = name.replace("_", " ")
    if isinstance(value, np.ndarray):
        yield from _array(study, words, value)
    elif isinstance(value, bytes):
        yield f"{words}: {value[:16].hex()}{'...' if len(value) > 16 else ''} ({len(value)} bytes)"
    elif isinstance(value, Parcel):
        yield f"{words}: {value.size:,} sealed bytes of {value.sender}, digest {value.digest[:16]}"
    elif isinstance(value, Mapping):
        yield f"{words}:" + ("" if value else " none")
        for key, inner in value.items():
            yield from (f"  {line}" for line in _field(study, str(key), inner))
    elif isinstance(value, tuple) and value and not isinstance(value[0], str):
        yield f"{words}:"
        for place, inner in enumerate(value, start=1):
            yield from (f"  {line}" for line in _field(study, str(place), inner))
    elif isinstance(value, tuple):
        yield f"{words}: {', '.join(value) or 'none'}"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield f"{words}:"
        yield from (f"  {line}" for line in _fields(study, value))
    else:
        yield f"{words}: {value}"


def _array(study: Study, words: str, value: NDArray[Any]) -> Iterator[str]:
    columns = columns_of(study.features)
    if value.dtype == np.bool_ and words == "present" and len(value) == len(columns):
        absent = [column.name for column, here in zip(columns, value, strict=True) if not here]
        yield f"features: {'without ' + ', '.join(absent) if absent else f'all {len(study.features)}'}"
    elif value.dtype == np.bool_:
        yield f"{words}: yes to {np.count_nonzero(value)} of {value.size}"
    elif words in ("vector", "means") and len(value) >= len(columns):
        yield f"{words}:"
        yield from (f"  {line}" for line in _vector_lines(study, columns, value))
    elif value.dtype == np.uint64:
        yield f"{words}: {value.size} hidden numbers, without meaning until all houses' are added up: {_some(value)}"
    else:
        yield f"{words}: {value.size} numbers: {_some(value)}"


def _vector_lines(study: Study, columns: Sequence[Column], vector: NDArray[np.float64]) -> Iterator[str]:
    """Means in the study's own units, shares in percent; then shares of missing values, where they are told."""
    names = [column.name for column in columns] + [f"{feature.name} missing" for feature in study.features]
    wide = max(map(len, names[: len(vector)]))
    for place, value in enumerate(vector):
        feature = columns[place].feature if place < len(columns) else None
        if np.isnan(value):
            said = "not told: too few patients"
        elif feature is not None and feature.range is not None:
            low, high = feature.range
            said = f"{low + value * (high - low):.6g} {feature.unit or ''}".rstrip() + " on average"
        else:
            said = f"{100 * value:.4g} %"
        yield f"{names[place]:<{wide}}  {said}"


def _some(value: NDArray[Any]) -> str:
    shown = ", ".join(f"{one:.10g}" if value.dtype.kind == "f" else str(one) for one in value.ravel()[:SHOWN])
    return shown + (", ..." if value.size > SHOWN else "")
