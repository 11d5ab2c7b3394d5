"""A first study from tables: what kind each column is, in which range, and which columns are no features.

What it writes is shared with other houses, so ranges are widened to round numbers and rare texts are not named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from spinney.connectors.tables import NAME_PATTERN, patient_column
from spinney.errors import StudyInvalid
from spinney.rows.encode import texts
from spinney.study.definition import RESERVED_COLUMNS
from spinney.study.settings import MOST_THRESHOLD_STEPS, THRESHOLD_STEPS, Feature, Label
from spinney.study.study import Study

MOST_FEATURES = 5000
FEWEST_PATIENTS_OF_A_CATEGORY = 5
MOST_CATEGORIES = 50
MOST_OUTCOMES = 20
STEPS_ACROSS_THE_MIDDLE = 50
NEGATIVE_WORDS = {
    "0",
    "no",
    "n",
    "none",
    "false",
    "negative",
    "neg",
    "absent",
    "control",
    "healthy",
    "alive",
    "survived",
}


class Inferred(NamedTuple):
    """A study to be read and corrected, the patient column, and what people should know about both."""

    study: Study
    patient: str | None
    notes: tuple[str, ...]


class LeftOut(Exception):
    """This column is no feature, and why."""


def infer_study(tables: Mapping[str, pd.DataFrame], label: str, name: str) -> Inferred:
    """Guess a study from the tables of all sites."""
    for what, word in (("study", name), ("label", label)):
        if not NAME_PATTERN.fullmatch(word):
            raise StudyInvalid([f"{word!r} cannot name a {what}: use letters, digits, _ . or -, a letter first"])
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    patient = patient_column(columns)
    outcome, notes = _label(tables, label)
    if patient:
        notes.append(f"{patient} says whose row it is and is no feature.")
    features = []
    for column in columns:
        if column in {label, patient}:
            continue
        holders = [site for site, table in tables.items() if column in table.columns]
        try:
            people = [_people(tables[site], patient) for site in holders]
            features.append(_feature(column, [tables[site][column] for site in holders], people))
        except LeftOut as why:
            notes.append(f"{column} is left out: {why}.")
            continue
        if len(holders) < len(tables):
            notes.append(
                f"{column} is absent at {', '.join(sorted(set(tables) - set(holders)))}; trees on it abstain there."
            )
    if not features:
        raise StudyInvalid([f"no column but the label {label} can be a feature: {' '.join(notes)}"])
    if len(features) > MOST_FEATURES:
        raise StudyInvalid([f"{len(features)} columns could be features; a study takes {MOST_FEATURES}"])
    return Inferred(Study(name=name, features=tuple(features), label=outcome), patient, tuple(notes))


def _label(tables: Mapping[str, pd.DataFrame], label: str) -> tuple[Label, list[str]]:
    without = [site for site, table in tables.items() if label not in table.columns]
    if without:
        raise StudyInvalid([f"{label} is no column at {', '.join(without)}; every site needs the label"])
    values = pd.concat([pd.Series(_words(table[label])) for table in tables.values()]).dropna()
    counts = values.value_counts()
    if len(counts) < 2:
        raise StudyInvalid([f"{label} has the same value everywhere, so there is nothing to predict"])
    if len(counts) > MOST_OUTCOMES:
        raise StudyInvalid([f"{label} has {len(counts)} different values; a label needs yes and no"])
    default = Label(name=label)
    if sorted((word in default.positive) - (word in NEGATIVE_WORDS) for word in counts.index) == [-1, 1]:
        return default, []
    positive, why = _positive_words(label, counts)
    return Label(name=label, positive=positive), [f"{label} means yes where it is {' or '.join(positive)}: {why}."]


def _positive_words(label: str, counts: pd.Series) -> tuple[tuple[str, ...], str]:
    words = sorted(counts.index, key=lambda word: (_number(word), word))
    negative = [word for word in words if word.lower() in NEGATIVE_WORDS]
    if len(negative) == 1:
        return tuple(word for word in words if word not in negative), f"everything but {negative[0]}"
    if len(words) > 2:
        raise StudyInvalid(
            [f"{label} has {len(words)} different values, and none of them is 0 or no; map it to 0 and 1"]
        )
    if all(math.isfinite(_number(word)) for word in words):
        return (words[1],), f"the larger of two numbers; swap it if {words[0]} is the event"
    rarer, other = sorted(words, key=lambda word: (counts[word], word))
    return (rarer,), f"the rarer of two words; swap it if {other} is the event"


def _people(table: pd.DataFrame, patient: str | None) -> pd.Series:
    """Whose row it is; without a patient column every row is somebody's own."""
    return table[patient] if patient in table.columns else pd.Series(range(len(table)))


def _feature(name: str, parts: list[pd.Series], people: list[pd.Series]) -> Feature:
    if name.lower() in RESERVED_COLUMNS:
        raise LeftOut("every cohort has a column of this name; rename it")
    if not NAME_PATTERN.fullmatch(name):
        raise LeftOut("rename it to letters, digits, _ . or -, a letter first")
    if any(pd.api.types.is_datetime64_any_dtype(part) for part in parts):
        raise LeftOut("a date is no feature; use an age or a number of days")
    words = pd.Series([word for part in parts for word in _words(part) if word is not None], dtype=object)
    if words.empty:
        raise LeftOut("it has no values")
    counts = words.value_counts()
    if len(counts) == 1:
        raise LeftOut("it has the same value everywhere")
    numbers = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64)
    numeric = bool(np.isfinite(numbers).all())
    if len(counts) > 0.9 * len(words) and (not numeric or re.search(r"(?:^|_)id$|I[Dd]$", name)) and len(words) > 10:
        raise LeftOut("nearly every row has a value of its own, as identifiers do")
    if not numeric:
        return Feature(name=name, kind="categorical", categories=_categories(_patients_by_word(parts, people)))
    if set(np.unique(numbers)) == {0.0, 1.0}:
        return Feature(name=name, kind="binary")
    low, high = _round_range(float(numbers.min()), float(numbers.max()))
    return Feature(name=name, kind="continuous", range=(low, high), precision=_precision(numbers, high - low))


def _patients_by_word(parts: list[pd.Series], people: list[pd.Series]) -> pd.Series:
    """Distinct patients of every word; a patient of two sites counts as two."""
    frames = [
        pd.DataFrame({"word": _words(part), "who": who.to_numpy(), "site": site})
        for site, (part, who) in enumerate(zip(parts, people, strict=True))
    ]
    known = pd.concat(frames).dropna(subset=["word", "who"]).drop_duplicates()
    return known["word"].value_counts()


def _categories(patients: pd.Series) -> tuple[str, ...]:
    common = sorted(patients.index[patients >= FEWEST_PATIENTS_OF_A_CATEGORY])
    if len(common) > MOST_CATEGORIES:
        raise LeftOut(f"it has {len(common)} different texts; group them")
    if len(common) < 2:
        raise LeftOut(f"fewer than two of its texts belong to {FEWEST_PATIENTS_OF_A_CATEGORY} patients or more")
    return tuple(common)


def _round_range(low: float, high: float) -> tuple[float, float]:
    step = _round_down((high - low) / 10)
    digits = max(0, -math.floor(math.log10(step)))
    first, last = math.floor(round(low / step, 6)), math.ceil(round(high / step, 6))
    return round(first * step, digits), round(last * step, digits)


def _precision(numbers: np.ndarray, span: float) -> float | None:
    """Finer than a thousandth of the range where most patients are crowded in a small part of it."""
    middle = _middle(numbers) or _middle(numbers[numbers != np.median(numbers)])  # most patients may share one value
    wanted = middle / STEPS_ACROSS_THE_MIDDLE
    if wanted < 2 and np.all(numbers == np.round(numbers)):
        wanted = 0.5  # thresholds lie half-way between whole numbers
    if not 0 < wanted < span / THRESHOLD_STEPS:
        return None
    finest = span / MOST_THRESHOLD_STEPS
    return _round_down(wanted) if _round_down(wanted) >= finest else _round_up(finest)


def _middle(numbers: np.ndarray) -> float:
    low, high = np.quantile(numbers, [0.25, 0.75]) if len(numbers) else (0.0, 0.0)
    return float(high - low)


def _round_down(number: float) -> float:
    """The largest of ... 0.5, 1, 2, 5, 10, 20, 50 ... that is not above."""
    return max(step for step in _round_numbers(number) if step <= number)


def _round_up(number: float) -> float:
    return min(step for step in _round_numbers(number) if step >= number)


def _round_numbers(near: float) -> list[float]:
    power = math.floor(math.log10(near))
    return [float(f"{digit}e{exponent}") for exponent in (power - 1, power, power + 1) for digit in (1, 2, 5)]


def _words(column: pd.Series) -> list[str | None]:
    return [word or None for word in texts(column.to_numpy(dtype=object))]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.inf
