"""What DuckDB is told about features, and its figures as columns: a row per index event, whatever DuckDB leaves out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spinney.cohort.feature_columns import FeatureColumns, is_word, set_up_features
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


def figures(bench, *rows: tuple[int, int, float | None, str | None]) -> None:
    """As the engine leaves them: (row, feature, value, text), and how many features each row has something of."""
    bench.execute("CREATE TABLE figure (row BIGINT, feature INT, value DOUBLE, text VARCHAR)")
    bench.executemany("INSERT INTO figure VALUES (?, ?, ?, ?)", [list(row) for row in rows])
    bench.execute("CREATE TABLE seen AS SELECT row, count(DISTINCT feature) AS features FROM figure GROUP BY row")


def test_a_figure_stands_in_its_row_and_what_has_none_is_missing(bench):
    figures(bench, (9, 0, 71.5, None), (3, 0, 60.0, None))
    columns = FeatureColumns(ROWS, OF)
    columns.add(bench, [0])
    assert columns.column(0).to_pylist() == [60.0, None, 71.5]


def test_what_was_counted_and_never_happened_is_none_at_all_and_not_unknown(bench):
    figures(bench, (5, 1, 4.0, None))
    columns = FeatureColumns(ROWS, OF)
    columns.add(bench, [1])
    assert columns.column(1).to_pylist() == [0.0, 4.0, 0.0]


def test_words_and_numbers_of_one_chunk_do_not_mix(bench):
    figures(bench, (3, 0, 60.0, None), (3, 2, None, "never"), (9, 2, None, "current"))
    columns = FeatureColumns(ROWS, OF)
    columns.add(bench, [0, 2])
    assert columns.column(2).to_pylist() == ["never", None, "current"]
    assert columns.column(0).to_pylist() == [60.0, None, None]


def test_a_row_is_eligible_with_a_value_of_every_feature_that_is_demanded(bench):
    of = study(feature("weight", "last"), feature("often", "count"), eligible={"values": ["weight", "often"]})
    figures(bench, (3, 0, 60.0, None), (3, 1, 1.0, None), (5, 0, 70.0, None))
    columns = FeatureColumns(ROWS, of)
    columns.add(bench, [0, 1])
    assert columns.eligible.tolist() == [True, False, False]


def test_the_last_text_is_a_word_and_the_number_of_texts_is_none():
    sources = event_features(study(WORD, feature("often", "count", value="text", codes=["a|1"])))
    assert [is_word(source) for source in sources.values()] == [True, False]


def test_duckdb_is_told_codes_windows_meanings_and_conversions(bench):
    of = study(
        feature("sum", "mean", codes=[WEIGHT, GLUCOSE, WEIGHT], window="2d"), feature("all", "count", codes=[]), WORD
    )
    set_up_features(bench, SimpleNamespace(conversions=[(0, "g", Conversion(0.001)), (0, None, Conversion())]), of)
    told = "SELECT feature, code, takes, counting FROM choice ORDER BY ALL"
    assert bench.execute(told).fetchall() == [
        (0, min(WEIGHT, GLUCOSE), "number", False),
        (0, max(WEIGHT, GLUCOSE), "number", False),
        (1, None, "number", True),
        (2, "http://loinc.org|72166-2", "text", False),
    ]
    assert bench.execute("SELECT back FROM span ORDER BY feature").fetchall() == [(2 * 86_400,), (None,), (None,)]
    meant = [(2, "current", "current"), (2, "never", "never"), (2, "sct|1", "never")]
    assert bench.execute("SELECT * FROM meaning ORDER BY ALL").fetchall() == meant
    assert bench.execute("SELECT unit, factor FROM converted ORDER BY unit").fetchall() == [("", 1.0), ("g", 0.001)]
