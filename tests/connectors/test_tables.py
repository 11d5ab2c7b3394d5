"""Tables in a folder, and the first study that they suggest."""

from __future__ import annotations

import pandas as pd
import pytest

from spinney.connectors.tables import patient_column, read_tables
from spinney.errors import SourceFailed


def test_each_file_is_a_site_in_the_order_of_names(tmp_path):
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "south.parquet")
    (tmp_path / "north.csv").write_text("x\n3\n")
    (tmp_path / "study.yaml").write_text("name: other")
    tables = read_tables(tmp_path)
    assert list(tables) == ["north", "south"]
    assert tables["south"]["x"].tolist() == [1, 2]


def test_question_marks_and_spaces_around_names_are_understood(tmp_path):
    (tmp_path / "north.csv").write_text("\ufeffx, y\n1, ?\n2, 5\n", encoding="utf-8")
    table = read_tables(tmp_path)["north"]
    assert list(table.columns) == ["x", "y"]
    assert table["y"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no CSV or Parquet file"),
        ({"north.csv": "x\n1\n", "north.parquet": "x"}, "north.csv and north.parquet are both"),
        ({"1 north.csv": "x\n1\n"}, "1 north.csv: a site's name is"),
        ({"north.parquet": "not parquet"}, "north.parquet cannot be read"),
        ({"north.csv": ""}, "north.csv cannot be read"),
        ({"north.csv": "x,y\n"}, "north.csv has no rows"),
        ({"north.csv": "x,y\n1,2,3\n"}, "north.csv cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(tmp_path, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(SourceFailed, match=words):
        read_tables(tmp_path)


def test_a_broken_file_is_not_quoted_in_the_error(tmp_path):
    (tmp_path / "north.csv").write_text('x,y\n"Miss Marple,2\n3,4,5\n')
    with pytest.raises(SourceFailed) as caught:
        read_tables(tmp_path)
    assert "Marple" not in str(caught.value)
    assert "a quote" in str(caught.value)


def test_a_folder_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(SourceFailed, match="is not a folder"):
        read_tables(tmp_path / "none")


@pytest.mark.parametrize("name", ["patient", "Patient_ID", "subject_id", "MRN", "patientId"])
def test_usual_names_of_patient_columns_are_known(name):
    assert patient_column(["age", name]) == name


def test_columns_between_semicolons_and_a_decimal_comma_are_read(tmp_path):
    (tmp_path / "north.csv").write_text("x;word;died\n1,5;a, b;0\n2,25;c;1\n")
    table = read_tables(tmp_path)["north"]
    assert table["x"].tolist() == [1.5, 2.25]
    assert table["word"].tolist() == ["a, b", "c"]


@pytest.mark.parametrize("head", ["x,died,x", "x,died,X", "x,died, x"])
def test_two_columns_of_one_name_are_refused(tmp_path, head):
    (tmp_path / "north.csv").write_text(f"{head}\n1,0,2\n")
    with pytest.raises(SourceFailed, match=r"north\.csv: x is the name of more than one column; rename or drop one"):
        read_tables(tmp_path)
