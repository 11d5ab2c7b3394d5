"""What DuckDB is told about a study's features, and the figures that it computes, as columns of a table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.cohort.recipes import definition_of, event_features
from spinney.cohort.selected_events import SelectedEvents
from spinney.study.definition import COUNTING, EventFeature, length
from spinney.study.study import Study


def is_word(source: EventFeature) -> bool:
    """Whether a feature's figure is a word and no number."""
    return source.value == "text" and source.statistic not in COUNTING


def set_up_features(bench: duckdb.DuckDBPyConnection, relevant: SelectedEvents, study: Study) -> None:
    """Small tables that say which event belongs to which feature, and how its value is made."""
    features = event_features(study).items()
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
        for place, one in features
        for code in dict.fromkeys(one.codes) or [None]
    ]
    names = ("feature", "kind", "code", "classes", "statuses", "answers", "takes", "counting", "bounds")
    words = pa.list_(pa.string())
    _put(
        bench,
        "choice",
        names,
        (pa.int32(), pa.string(), pa.string(), words, words, words, pa.string(), pa.bool_(), pa.bool_()),
        choice,
    )
    spans = [
        (place, None if one.window is None else int(length(one.window).total_seconds())) for place, one in features
    ]
    _put(bench, "span", ("feature", "back"), (pa.int32(), pa.int64()), spans)
    meanings = [
        (place, word, category)
        for place, one in features
        if one.value == "text"
        for word, category in _meaning(one, study.features[place].categories or ()).items()
    ]
    _put(bench, "meaning", ("feature", "word", "category"), (pa.int32(), pa.string(), pa.string()), meanings)
    by_unit = [(place, unit or "", by.factor, by.offset) for place, unit, by in dict.fromkeys(relevant.conversions)]
    types = (pa.int32(), pa.string(), pa.float64(), pa.float64())
    _put(bench, "converted", ("feature", "unit", "factor", "shift"), types, by_unit)


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

    def __init__(self, rows: NDArray[np.int64], study: Study) -> None:
        self._rows, self._sources = rows, event_features(study)
        self._columns: dict[int, pa.Array] = {}
        self._needed = len({*definition_of(study).eligible.values})
        self._seen = np.zeros(len(rows), dtype=np.int64)

    def add(self, bench: duckdb.DuckDBPyConnection, chunk: list[int]) -> None:
        """Take over what the tables `figure` and `seen` hold of some features."""
        seen = bench.sql("SELECT row, features FROM seen").to_arrow_table()
        self._seen[self._places(seen)] += seen["features"].to_numpy()
        words = [place for place in chunk if is_word(self._sources[place])]
        numbers = [place for place in chunk if not is_word(self._sources[place])]
        self._add(bench, numbers, "value", np.float64, np.nan)
        self._add(bench, words, "text", object, None)

    def column(self, place: int) -> pa.Array:
        """A feature's column; what was counted and never happened is 0."""
        return self._columns.pop(place)

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Rows with at least one value of each feature that the study demands."""
        return np.asarray(self._seen == self._needed)

    def _add(self, bench: duckdb.DuckDBPyConnection, chunk: list[int], what: str, kind: Any, missing: Any) -> None:
        if not chunk:
            return
        places = ", ".join(map(str, chunk))
        found = bench.sql(
            f'SELECT row, feature, "{what}" AS it FROM figure WHERE "{what}" IS NOT NULL AND feature IN ({places})'  # noqa: S608
        ).to_arrow_table()
        cells = np.full((len(chunk), len(self._rows)), missing, dtype=kind)
        line = np.searchsorted(chunk, found["feature"].to_numpy())
        cells[line, self._places(found)] = found["it"].to_numpy(zero_copy_only=False)
        for place, values in zip(chunk, cells, strict=True):
            if self._sources[place].statistic in ("count", "exists"):
                values = np.nan_to_num(values, nan=0.0)
            self._columns[place] = pa.array(values, pa.string() if kind is object else pa.float64(), from_pandas=True)

    def _places(self, found: pa.Table) -> NDArray[np.int64]:
        return np.asarray(np.searchsorted(self._rows, found["row"].to_numpy()))
