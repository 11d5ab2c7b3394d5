"""Every system of the comparison trains on the same rows, and is measured on rows that none of them got."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.speed_cases import SITES, Case
from spinney.configuration.study_file import read_study
from spinney.connectors.tables import read_table
from spinney.rows.cohort import cohort_from_frame
from spinney.rows.parts import Part


@pytest.fixture(params=[Case("breast cancer", trees=5), Case("made up", trees=5, rows=400, held_out=100)])
def written(request, tmp_path):
    return request.param.write(tmp_path / "case")


def rows_of(table):
    """As a set; a row is told apart by its values as they are in the file."""
    return {*map(tuple, table.to_numpy(dtype=float).round(6))}


def test_peers_get_the_rows_that_spinney_trains_on(written):
    study = read_study(written / "study.yaml")
    for number in range(1, SITES + 1):
        table = read_table(written / "tables" / f"site-{number}.csv")
        trains = cohort_from_frame(table, study).part == Part.TRAINING
        theirs = pd.read_csv(written / f"site-{number}" / "train.csv", header=None)
        assert 0.7 < trains.mean() < 0.8
        assert rows_of(theirs) == rows_of(table[trains])


def test_nobody_gets_the_rows_that_all_are_measured_on(written):
    held_out = rows_of(pd.read_csv(written / "held_out.csv", header=None))
    tables = [read_table(file) for file in (written / "tables").iterdir()]
    assert len(held_out) >= 100
    assert held_out.isdisjoint(set().union(*map(rows_of, tables)))
