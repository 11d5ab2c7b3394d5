"""What DuckDB is told about features, and its figures as columns: a row per index event, whatever DuckDB leaves out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spinney.cohort.feature_columns import FeatureColumns, set_up_features
from spinney.cohort.looks import is_word, looks_of
from spinney.cohort.recipes import event_features
from spinney.connectors.duck import open_bench
from spinney.connectors.units import Conversion
from tests.made_up import GLUCOSE, WEIGHT, feature, study

WORD = {
    "name": "smoking",
    "kind": "categorical",
    "categories": ["never", "current"],
    "source": {
        "kind": "Observation",
        "codes": ["http://loinc.org|72166-2"],
        "value": "text",
        "statistic": "last",
        "meaning": {"sct|1": "never"},
    },
}
OF = study(feature("weight", "last", window="2d"), feature("often", "count"), WORD)
ROWS = np.array([3, 5, 9])  # index events of one bucket


@pytest.fixture
def bench(tmp_path: Path):
    with open_bench(tmp_path) as made:
        yield made


def figures(statistic: str, *lines: tuple[int, int, Any]) -> pa.Table:
    """As the engine leaves them: (row, look, value)."""
    rows, looks, values = zip(*lines, strict=True)
    return pa.table({"row": pa.array(rows, pa.int64()), "look": pa.array(looks, pa.int32()), statistic: values})


def test_a_figure_stands_in_its_row_and_what_has_none_is_missing():
    columns = FeatureColumns(ROWS, OF, looks_of(OF))
    columns.add(figures("last", (9, 0, 71.5), (3, 0, 60.0)), [0])
    assert columns.column(0).to_pylist() == [60.0, None, 71.5]


def test_what_was_counted_and_never_happened_is_none_at_all_and_not_unknown():
    columns = FeatureColumns(ROWS, OF, looks_of(OF))
    columns.add(figures("count", (5, 1, 4.0)), [1])
    assert columns.column(1).to_pylist() == [0.0, 4.0, 0.0]


def test_words_are_words_and_missing_where_there_are_none():
    columns = FeatureColumns(ROWS, OF, looks_of(OF))
    columns.add(figures("last", (3, 2, "never"), (9, 2, "current")), [2])
    assert columns.column(2).to_pylist() == ["never", None, "current"]


def test_two_features_that_are_the_same_figure_have_the_same_column():
    of = study(feature("weight", "last"), feature("heaviness", "last"))
    columns = FeatureColumns(ROWS, of, looks_of(of))
    columns.add(figures("last", (3, 0, 60.0)), [0])
    assert columns.column(0).to_pylist() == columns.column(1).to_pylist() == [60.0, None, None]


def test_a_row_is_eligible_with_a_value_of_every_feature_that_is_demanded():
    of = study(feature("weight", "last"), feature("often", "count"), eligible={"values": ["weight", "often"]})
    columns = FeatureColumns(ROWS, of, looks_of(of))
    columns.add(figures("last", (3, 0, 60.0), (5, 0, 70.0)), [0])
    columns.add(figures("count", (3, 1, 1.0)), [1])
    assert columns.eligible.tolist() == [True, False, False]


def test_two_demanded_features_of_one_look_are_both_there_if_one_is():
    of = study(feature("last", "last"), feature("mean", "mean"), eligible={"values": ["last", "mean"]})
    columns = FeatureColumns(ROWS, of, looks_of(of))
    columns.add(figures("last", (3, 0, 60.0)).append_column("mean", [[60.0]]), [0])
    assert columns.eligible.tolist() == [True, False, False]


def test_the_last_text_is_a_word_and_the_number_of_texts_is_none():
    sources = event_features(study(WORD, feature("often", "count", value="text", codes=["a|1"])))
    assert [is_word(source) for source in sources.values()] == [True, False]


def test_duckdb_is_told_codes_windows_meanings_and_conversions(bench):
    of = study(
        feature("sum", "mean", codes=[WEIGHT, GLUCOSE, WEIGHT], window="2d"), feature("all", "count", codes=[]), WORD
    )
    conversions = [(0, "g", Conversion(0.001)), (0, None, Conversion())]
    set_up_features(bench, SimpleNamespace(conversions=conversions), of, looks_of(of))
    told = "SELECT series, code, takes, counting FROM choice ORDER BY ALL"
    assert bench.execute(told).fetchall() == [
        (0, min(WEIGHT, GLUCOSE), "number", False),
        (0, max(WEIGHT, GLUCOSE), "number", False),
        (1, None, "number", True),
        (2, "http://loinc.org|72166-2", "text", False),
    ]
    assert bench.execute("SELECT back FROM span ORDER BY look").fetchall() == [(2 * 86_400,), (None,), (None,)]
    meant = [(2, "current", "current"), (2, "never", "never"), (2, "sct|1", "never")]
    assert bench.execute("SELECT * FROM meaning ORDER BY ALL").fetchall() == meant
    assert bench.execute("SELECT unit, factor FROM converted ORDER BY unit").fetchall() == [("", 1.0), ("g", 0.001)]
