"""What Great Expectations is to expect of a cohort: the study's words, one rule each, with a severity."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from spinney.rows.encode import texts
from spinney.study.definition import Quality, Rule
from spinney.study.settings import Feature
from spinney.study.study import Study

Severity = Literal["critical", "warning"]

NUMBERS = ["float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool"]
SHOWN_CATEGORIES = 5
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Expected:
    """One rule: the expectation's class in Great Expectations, its arguments, and how many of the rows must keep it."""

    rule: str
    severity: Severity
    expectation: str
    arguments: dict[str, Any]
    mostly: float = 1.0

    @property
    def counted(self) -> str:
        """What is counted for it: the same for rules that differ only in how many rows must keep them."""
        return f"{self.expectation} {self.arguments}"


def quality_of(study: Study) -> Quality:
    """The study's quality rules; a study of finished tables has the defaults."""
    return study.cohort.quality if study.cohort else Quality()


def prepared(table: pa.Table, study: Study) -> pd.DataFrame:
    """The table as the encoder reads it: categories as words, the label as 1 and 0; and a column per rule."""
    frame: pd.DataFrame = table.to_pandas()
    for feature in study.features:
        if feature.kind == "categorical" and feature.name in frame:
            frame[feature.name] = pd.Series(_words(frame[feature.name]), dtype=object)
    label = study.label
    if label.name in frame:
        yes = [np.nan if word is None else float(word in label.positive) for word in _words(frame[label.name])]
        frame[label.name] = pd.Series(yes, dtype=float)
    for rule in _rules(frame, study):
        frame[_column(rule)] = _kept(frame, rule)
    return frame


def _words(column: pd.Series) -> list[str | None]:
    return texts(column.to_numpy(dtype=object))


def _rules(frame: pd.DataFrame, study: Study) -> list[Rule]:
    """The study's rules whose columns this site has; that a column is missing is another rule's business."""
    numbers = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])}
    return [
        rule
        for rule in quality_of(study).rules
        if rule.column in numbers and (not isinstance(rule.than, str) or rule.than in numbers)
    ]


def _column(rule: Rule) -> str:
    return f"rule: {rule.name}"


def _kept(frame: pd.DataFrame, rule: Rule) -> pd.Series:
    """1 where a rule is kept, 0 where not, missing where one side is not known."""
    left = frame[rule.column]
    right = frame[rule.than] if isinstance(rule.than, str) else pd.Series(rule.than, index=frame.index)
    kept: pd.Series = COMPARISONS[rule.comparison](left, right).astype(float)
    return kept.where(left.notna() & right.notna())


def expectations(frame: pd.DataFrame, study: Study) -> Iterator[Expected]:
    """The whole contract, as far as a table has the columns to check it."""
    needed = ["patient", "index_time", study.label.name]
    yield _columns(f"{', '.join(needed)} are columns", "critical", needed)
    yield _columns("every feature is a column", "warning", [feature.name for feature in study.features])
    if set(needed) <= set(frame.columns):
        yield from _about_rows(study)
    for feature in study.features:
        if feature.name in frame:
            yield from _about_values(feature, frame)
            yield from _about_missing(feature.name, quality_of(study))
    for rule in _rules(frame, study):
        arguments = {"column": _column(rule), "value_set": [1.0]}
        yield Expected(rule.name, rule.severity, "ExpectColumnValuesToBeInSet", arguments, rule.mostly)


def _columns(rule: str, severity: Severity, names: list[str]) -> Expected:
    return Expected(rule, severity, "ExpectTableColumnsToMatchSet", {"column_set": names, "exact_match": False})


def _about_rows(study: Study) -> Iterator[Expected]:
    label, unique = study.label.name, "ExpectColumnUniqueValueCountToBeBetween"
    yield Expected(f"{label} is known", "critical", "ExpectColumnValuesToNotBeNull", {"column": label})
    yield Expected(
        f"{label} is yes in some rows and no in others", "critical", unique, {"column": label, "min_value": 2}
    )
    yield Expected(
        "no index event of a patient twice",  # two at one time are two; `volume` refuses many rows that are twice
        "warning",
        "ExpectCompoundColumnsToBeUnique",
        {"column_list": ["patient", "index_time"], "ignore_row_if": "any_value_is_missing"},
    )


def _about_values(feature: Feature, frame: pd.DataFrame) -> Iterator[Expected]:
    column = {"column": feature.name}
    if feature.kind != "categorical":
        numbers = {**column, "type_list": NUMBERS}
        yield Expected(f"{feature.name} is a number", "critical", "ExpectColumnValuesToBeInTypeList", numbers)
        if not pd.api.types.is_numeric_dtype(frame[feature.name]):
            return
    words, expectation, allowed = _allowed(feature)
    arguments = {**column, **allowed}
    yield Expected(f"{feature.name} is {words}", "warning", expectation, arguments)
    # a few other values are clipped or count as missing; if it is most of them, unit or code is not what it says
    yield Expected(f"at least half of {feature.name} is {words}", "critical", expectation, arguments, mostly=0.5)


def _allowed(feature: Feature) -> tuple[str, str, dict[str, Any]]:
    """What a known value may be, in words and for Great Expectations."""
    if feature.range is not None:
        low, high = feature.range
        unit = f" {feature.unit}" if feature.unit else ""
        within = {"min_value": low, "max_value": high}
        return f"between {low:g} and {high:g}{unit}", "ExpectColumnValuesToBeBetween", within
    values: list[Any] = list(feature.categories) if feature.categories else [0, 1]
    shown = ", ".join(str(value) for value in values[:SHOWN_CATEGORIES])
    more = " ..." if len(values) > SHOWN_CATEGORIES else ""
    return f"one of {shown}{more}", "ExpectColumnValuesToBeInSet", {"value_set": values}


def _about_missing(name: str, quality: Quality) -> Iterator[Expected]:
    if name in quality.largest_missing:
        most = quality.largest_missing[name]
        rule = f"{name} is missing in at most {most:.0%} of the rows"
        yield Expected(
            rule, quality.missing_severity, "ExpectColumnValuesToNotBeNull", {"column": name}, mostly=1 - most
        )
