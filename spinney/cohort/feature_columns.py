"""What DuckDB is told about a study's features, and the figures that it computes, as columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.cohort.looks import Look, series_of
from spinney.cohort.recipes import definition_of, event_features
from spinney.cohort.selected_events import SelectedEvents
from spinney.study.definition import COUNTING, EventFeature
from spinney.study.study import Study


def set_up_features(
    bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study, looks: Sequence[Look]
) -> None:
    """Small tables that say which event belongs to which series, how its value is made, and how far each look goes."""
    series, features = series_of(study), event_features(study)
    first = {place: features[place] for place in dict.fromkeys(series.values())}
    choice = [
        (
            place,
            one.kind,
            code,
            list(one.classes),
            list(one.statuses),
            list(one.answers),
            one.value,
            one.statistic in COUNTING,
            one.censored == "bound",
        )
        for place, one in first.items()
        for code in dict.fromkeys(one.codes) or [None]
    ]
    names = ("series", "kind", "code", "classes", "statuses", "answers", "takes", "counting", "bounds")
    words = pa.list_(pa.string())
    _put(
        bench,
        "choice",
        names,
        (pa.int32(), pa.string(), pa.string(), words, words, words, pa.string(), pa.bool_(), pa.bool_()),
        choice,
    )
    spans = [(number, look.series, look.back) for number, look in enumerate(looks)]
    _put(bench, "span", ("look", "series", "back"), (pa.int32(), pa.int32(), pa.int64()), spans)
    meanings = [
        (place, word, category)
        for place, one in first.items()
        if one.value == "text"
        for word, category in _meaning(one, study.features[place].categories or ()).items()
    ]
    _put(bench, "meaning", ("series", "word", "category"), (pa.int32(), pa.string(), pa.string()), meanings)
    by_unit = [
        (place, unit or "", by.factor, by.offset)
        for place, unit, by in dict.fromkeys(relevant.conversions)
        if place in first
    ]
    types = (pa.int32(), pa.string(), pa.float64(), pa.float64())
    _put(bench, "converted", ("series", "unit", "factor", "shift"), types, by_unit)


def _meaning(source: EventFeature, categories: Collection[str]) -> dict[str, str]:
    """Category by the words that mean it; a category means itself unless the study says otherwise."""
    every = {**{word: word for word in categories}, **source.meaning}
    return {word: category for word, category in every.items() if not categories or category in categories}


def _put(
    bench: duckdb.DuckDBPyConnection,
    table: str,
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    rows: list[tuple[Any, ...]],
) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    bench.register("put", pa.table(arrays, names=list(names)))
    bench.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM put")  # noqa: S608 (our own words)
    bench.unregister("put")


class FeatureColumns:
    """The figures of one bucket: a column per feature, in the order of `rows`."""

    def __init__(self, rows: NDArray[np.int64], study: Study, looks: Sequence[Look]) -> None:
        self._rows, self._looks = rows, looks
        self._columns: dict[int, pa.Array] = {}
        needed = {*definition_of(study).eligible.values}
        demanded = {place for place, one in enumerate(study.features) if one.name in needed}
        self._needed = np.array([not demanded.isdisjoint(one.places) for one in looks], dtype=bool)
        self._seen = np.zeros(len(rows), dtype=np.int64)

    def add(self, found: pa.Table, some: Sequence[int]) -> None:
        """Take over the figures of looks that want the same statistics: a line per row and look, a column each."""
        line = np.searchsorted(self._rows, found["row"].to_numpy())
        look = found["look"].to_numpy()
        self._seen += np.bincount(line[self._needed[look]], minlength=len(self._rows))
        at = np.searchsorted(some, look)
        words = self._looks[some[0]].is_word
        for statistic in self._looks[some[0]].statistics:
            cells = np.full((len(some), len(self._rows)), None if words else np.nan, dtype=object if words else float)
            cells[at, line] = found[statistic].to_numpy(zero_copy_only=False)
            if statistic in ("count", "exists"):
                cells = np.nan_to_num(cells, nan=0.0)
            for number, values in zip(some, cells, strict=True):
                column = pa.array(values, pa.string() if words else pa.float64(), from_pandas=True)
                self._columns |= dict.fromkeys(self._looks[number].statistics[statistic], column)

    def column(self, place: int) -> pa.Array:
        """A feature's column; what was counted and never happened is 0."""
        return self._columns.pop(place)

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Rows with at least one value of each feature that the study demands."""
        return np.asarray(self._seen == np.count_nonzero(self._needed))
