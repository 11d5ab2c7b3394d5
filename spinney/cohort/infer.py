"""A first study from tables: what kind each column is, in which range, and which columns are no features.

What it writes is shared with other houses, so ranges are widened to round numbers and rare texts are not named.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from spinney.connectors.tables import NAME_PATTERN, patient_column
from spinney.errors import StudyInvalid
from spinney.rows.encode import texts
from spinney.rows.read_as import READINGS, edges, is_closed
from spinney.rows.recorded import recorded_steps, rounded_down
from spinney.study.cuts import FINEST_CUTS, MOST_CUTS, cuts_of
from spinney.study.definition import RESERVED_COLUMNS
from spinney.study.settings import Feature, Label
from spinney.study.study import Study

MOST_FEATURES = 5000
FEWEST_PATIENTS_OF_A_CATEGORY = 5
MOST_CATEGORIES = 50
MOST_OUTCOMES = 20
CUTS_ACROSS_THE_MIDDLE = 8
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


CODE_NAME = re.compile(r"(?:^|[_ .-])(?i:id|code|cd|type)$|[a-z](?:I[Dd]|Code|Type)$")


class Answers(NamedTuple):
    """What people say of columns that can be read in more than one way."""

    codes: frozenset[str] = frozenset()
    """Numbers that are codes: each is a category."""
    numbers: frozenset[str] = frozenset()
    """Numbers that are amounts, although the column is called like a code."""
    chapters: frozenset[str] = frozenset()
    """Codes of the ICD, to be grouped by chapter."""


class Inferred(NamedTuple):
    """A study to be read and corrected, the patient column, what people should know, and what they should answer."""

    study: Study
    patient: str | None
    notes: tuple[str, ...]
    asked: tuple[str, ...] = ()
    """Columns of few whole numbers that are called like codes; they are categories unless somebody says `numbers`."""


class LeftOut(Exception):
    """This column is no feature, and why."""


def infer_study(tables: Mapping[str, pd.DataFrame], label: str, name: str, answers: Answers = Answers()) -> Inferred:  # noqa: B008
    """Guess a study from the tables of all sites. StudyInvalid if no study can be made of them."""
    if not NAME_PATTERN.fullmatch(name):
        raise StudyInvalid([f"{name!r} cannot name a study: use letters, digits, _ . or -, a letter first"])
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    if unknown := sorted(answers.codes.union(answers.numbers, answers.chapters).difference(columns)):
        raise StudyInvalid([f"{unknown[0]} is no column; there are {', '.join(columns[:20])}"])
    patient = patient_column([column for column in columns if column != label])
    outcome, notes = _label(tables, label)
    if patient:
        notes.append(f"{patient} says whose row it is and is no feature.")
    features: list[Feature] = []
    asked: list[str] = []
    names = _names([column for column in columns if column not in {label, patient}], outcome.name)
    for column in columns:
        if column in {label, patient}:
            continue
        holders = [site for site, table in tables.items() if column in table.columns]
        try:
            people = [_people(tables[site], patient) for site in holders]
            found = _Column(column, [tables[site][column] for site in holders], people, answers)
            features.append(found.feature(names[column]))
        except LeftOut as why:
            notes.append(f"{column} is left out: {why}.")
            continue
        notes += found.notes
        asked += [column] if found.may_be_codes else []
        if len(holders) < len(tables):
            lacking = ", ".join(sorted(set(tables) - set(holders)))
            notes.append(f"{column} is absent at {lacking}; trees take it as missing there.")
    if not features:
        raise StudyInvalid([f"no column but the label {label} can be a feature: {' '.join(notes)}"])
    if len(features) > MOST_FEATURES:
        raise StudyInvalid([f"{len(features)} columns could be features; a study takes {MOST_FEATURES}"])
    return Inferred(Study(name=name, features=tuple(features), label=outcome), patient, tuple(notes), tuple(asked))


def _names(columns: Sequence[str], label: str) -> dict[str, str]:
    """A name for every column: its own where that is one, else one that is made of its letters and digits."""
    own = {column for column in columns if NAME_PATTERN.fullmatch(column) and column.lower() not in RESERVED_COLUMNS}
    taken = {column.lower() for column in (*own, *columns, label)} | RESERVED_COLUMNS
    names = {}
    for column in columns:
        names[column] = column if column in own else name_for_column(column, taken)
        taken.add(names[column].lower())
    return names


def name_for_column(column: str, taken: Collection[str] = ()) -> str:
    """A name that is made of a column's letters and digits, and that is none of those in small letters."""
    plain = unicodedata.normalize("NFKD", column).encode("ascii", "ignore").decode()
    word = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain).strip("_.-")[:56] or "x"
    word = word if word[0].isalpha() else f"x_{word}"
    return next(name for name in (word, *(f"{word}_{n}" for n in range(2, 10**6))) if name.lower() not in taken)


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
    name = label if NAME_PATTERN.fullmatch(label) and label.lower() not in RESERVED_COLUMNS else name_for_column(label)
    column = None if name == label else label
    default = Label(name=name, column=column)
    if sorted((word in default.positive) - (word in NEGATIVE_WORDS) for word in counts.index) == [-1, 1]:
        return default, []
    positive, why = _positive_words(label, counts)
    return default.model_copy(update={"positive": positive}), [
        f"{label} means yes where it is {' or '.join(positive)}: {why}."
    ]


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


class _Column:
    """One column of all sites that have it, and the feature that it can be."""

    def __init__(self, column: str, parts: list[pd.Series], people: list[pd.Series], answers: Answers) -> None:
        self.column, self.parts, self.people, self.answers = column, parts, people, answers
        self.notes: list[str] = []
        self.may_be_codes = False

    def feature(self, name: str) -> Feature:
        """Raises LeftOut with the reason if it can be none."""
        if re.fullmatch(r"Unnamed: \d+|\s*", self.column):
            raise LeftOut("it has no name, as row numbers have none")
        called = {"name": name} | ({} if name == self.column else {"column": self.column})
        if any(pd.api.types.is_datetime64_any_dtype(part) for part in self.parts):
            raise LeftOut("a date is no feature; use an age or a number of days")
        words = pd.Series([word for part in self.parts for word in _words(part) if word is not None], dtype=object)
        counts = words.value_counts()
        if words.empty:
            raise LeftOut("it has no values")
        if len(counts) == 1:
            raise LeftOut("it has the same value everywhere")
        if self.column in self.answers.chapters:
            return self._chapters(called, list(counts.index))
        numbers = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64)
        numeric = bool(np.isfinite(numbers).all())
        is_code = self.column in self.answers.codes or bool(CODE_NAME.search(self.column))
        if len(counts) > 0.9 * len(words) and (not numeric or is_code) and len(words) > 10:
            raise LeftOut("nearly every row has a value of its own, as identifiers do")
        if not numeric:
            return self._bands(called, list(counts.index)) or self._categories(called)
        if set(np.unique(numbers)) == {0.0, 1.0}:
            return Feature(**called, kind="binary")
        if is_code and self.column not in self.answers.numbers and np.all(numbers == np.round(numbers)):
            return self._codes(called, len(counts))
        low, high = _round_range(float(numbers.min()), float(numbers.max()))
        return Feature(**called, kind="continuous", range=(low, high), **_cuts(numbers, (low, high)))

    def _codes(self, called: dict[str, str], different: int) -> Feature:
        """Whole numbers that are called like codes: 3 is not more than 2."""
        if different > MOST_CATEGORIES:
            raise LeftOut(f"it has {different} different codes; group them, or say --numbers {self.column}")
        if self.column not in self.answers.codes:
            self.may_be_codes = True
            self.notes.append(
                f"{self.column} has {different} whole numbers and is called like a code, so each is a category; "
                f"if they are amounts, say --numbers {self.column}."
            )
        return self._categories(called)

    def _bands(self, called: dict[str, str], words: Sequence[str]) -> Feature | None:
        """Bands such as [70-80), in their order; None if they are none."""
        ends = [one for one in map(edges, words) if one is not None]
        if len(ends) < len(words) or not any(map(is_closed, words)):
            return None
        low, high = _round_range(min(one[0] for one in ends), max(one[1] for one in ends))
        self.notes.append(
            f"{self.column} holds bands such as {min(filter(is_closed, words))}; each is read as its middle."
        )
        return Feature(**called, kind="continuous", range=(low, high), read_as="bands")

    def _chapters(self, called: dict[str, str], words: Sequence[str]) -> Feature:
        """Codes of that edition of the ICD which knows more of them."""
        known = {how: [word for word in words if READINGS[how](word)] for how in ("icd-9-chapters", "icd-10-chapters")}
        how = max(known, key=lambda one: len(known[one]))
        if not known[how]:
            raise LeftOut("none of its values is a code of ICD-9 or ICD-10")
        read = READINGS[how]
        parts = [pd.Series([word and read(word) for word in _words(part)], dtype=object) for part in self.parts]
        self.notes.append(
            f"{self.column} is grouped by {how}; {len(words) - len(known[how])} of its {len(words)} values are no such "
            "codes and count as missing."
        )
        return Feature(
            **called, kind="categorical", categories=_common(_patients_by_word(parts, self.people)), read_as=how
        )

    def _categories(self, called: dict[str, str]) -> Feature:
        return Feature(**called, kind="categorical", categories=_common(_patients_by_word(self.parts, self.people)))


def _patients_by_word(parts: list[pd.Series], people: list[pd.Series]) -> pd.Series:
    """Distinct patients of every word; a patient of two sites counts as two."""
    frames = [
        pd.DataFrame({"word": _words(part), "who": who.to_numpy(), "site": site})
        for site, (part, who) in enumerate(zip(parts, people, strict=True))
    ]
    known = pd.concat(frames).dropna(subset=["word", "who"]).drop_duplicates()
    return known["word"].value_counts()


def _common(patients: pd.Series) -> tuple[str, ...]:
    common = sorted(patients.index[patients >= FEWEST_PATIENTS_OF_A_CATEGORY])
    if len(common) > MOST_CATEGORIES:
        raise LeftOut(f"it has {len(common)} different texts; group them")
    if len(common) < 2:
        raise LeftOut(f"fewer than two of its texts belong to {FEWEST_PATIENTS_OF_A_CATEGORY} patients or more")
    return tuple(common)


def _round_range(low: float, high: float) -> tuple[float, float]:
    step = rounded_down((high - low) / 10)
    digits = max(0, -math.floor(math.log10(step)))
    first, last = math.floor(round(low / step, 6)), math.ceil(round(high / step, 6))
    return round(first * step, digits), round(last * step, digits)


def _cuts(numbers: np.ndarray, ends: tuple[float, float]) -> dict[str, Any]:
    """In which steps the numbers are recorded, and cuts of which some lie where most patients are."""
    found: dict[str, Any] = {}
    span = ends[1] - ends[0]
    recorded = recorded_steps(numbers)
    if recorded is not None and recorded < span:
        found["resolution"] = recorded
    low, high = _middle(numbers)
    if low == high:
        low, high = _middle(numbers[numbers != np.median(numbers)])  # most patients may share one value

    def across(spacing: Literal["equal", "logarithmic"], most: int = MOST_CUTS) -> int:
        cuts = np.array(cuts_of(ends, found.get("resolution"), spacing, most))
        return int(np.count_nonzero((cuts > low) & (cuts < high)))

    wanted = min(CUTS_ACROSS_THE_MIDDLE, (high - low) / (2 * recorded) - 1 if recorded else np.inf)
    if low == high or across("equal") >= wanted:
        return found
    if ends[0] >= 0 and across("logarithmic") >= wanted:
        return found | {"cuts": "logarithmic"}
    most = next(
        most
        for most in (256, 1024, 4096, 16_384, FINEST_CUTS)
        if across("equal", most) >= wanted or most == FINEST_CUTS
    )
    return found | {"most_cuts": most}


def _middle(numbers: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(numbers, [0.25, 0.75]) if len(numbers) else (0.0, 0.0)
    return float(low), float(high)


def _words(column: pd.Series) -> list[str | None]:
    return [word or None for word in texts(column.to_numpy(dtype=object))]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.inf
