"""A finished table becomes a cohort: in every form that hospitals have, and never in two ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spinney.cohort.pull_report import PullResult
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.errors import CohortRejected, SourceFailed
from tests.made_up import NOW, plain_study, pull_at, study

TABLE = "patient,index_time,weight,outcome,surname\nann,2023-01-01,70.5,1,Meier\nbob,2023-01-02,?,0,Huber\n"


def from_csv(folder: Path, text: str, **settings: Any) -> PullResult:
    (folder / "cohort.csv").write_text(text)
    source = {"kind": "files", "table": folder / "cohort.csv", **settings}
    return pull_at(plain_study(), SiteSettings(name="north", home=folder / "home", source=source), now=NOW)


def test_a_finished_csv_becomes_a_cohort_with_the_columns_of_the_study(tmp_path: Path) -> None:
    result = from_csv(tmp_path, TABLE)
    table = Vault(tmp_path / "home").read(result.cohort)
    assert table.column_names == ["patient", "index_time", "weight", "outcome"]
    assert sorted(table["outcome"].to_pylist()) == [0, 1]
    assert result.report.notes == ["height: no such column in the table"]
    assert result.cohort.watermark is not None


def test_csv_parquet_and_both_databases_give_the_same_finished_cohort(
    tmp_path: Path, sqlite: Callable[..., str], postgres: Callable[..., str]
) -> None:
    digests = {from_csv(tmp_path, TABLE).cohort.digest}
    pd.read_csv(tmp_path / "cohort.csv", na_values="?").to_parquet(tmp_path / "cohort.parquet")
    create = "CREATE TABLE c (patient TEXT, index_time DATE, weight NUMERIC, outcome INT, surname TEXT)"
    insert = "INSERT INTO c VALUES ('ann', '2023-01-01', 70.5, 1, 'Meier'), ('bob', '2023-01-02', NULL, 0, 'Huber')"
    for source in (
        {"kind": "files", "table": tmp_path / "cohort.parquet"},
        {"kind": "sql", "url": sqlite(create, insert), "table": "SELECT * FROM c"},
        {"kind": "sql", "url": postgres(create, insert), "table": "SELECT * FROM c"},
    ):
        own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
        digests.add(pull_at(plain_study(), own, now=NOW).cohort.digest)
    assert len(digests) == 1


def test_rows_of_a_finished_table_without_an_outcome_are_only_for_scoring(tmp_path: Path) -> None:
    result = from_csv(tmp_path, TABLE + "cyd,2023-02-01,60,,Maier\n")
    assert (result.cohort.rows, result.unripe.rows) == (2, 1)


def test_a_finished_row_with_a_broken_value_is_in_quarantine(tmp_path: Path) -> None:
    broken = "cyd,2023-02-01,heavy,1,Maier\ndan,31.2.2023,60,0,Mayer\n,2023-02-01,60,0,Mayr\neve,2023-02-01\n"
    result = from_csv(tmp_path, TABLE + broken)
    assert result.report.quarantined == {
        ("table", "value is not a number"): 1,
        ("table", "broken date"): 1,
        ("table", "no subject"): 1,
        ("table", "broken line"): 1,
    }
    assert result.cohort.rows == 2


@pytest.mark.parametrize(
    "outcomes", [("1.0", "0.0"), ("true", "false"), ("True", "False"), ("Yes", "no"), ("YES", "No"), (" 1", "0 ")]
)
def test_a_label_is_yes_or_no_however_it_is_written(tmp_path: Path, outcomes: tuple[str, str]) -> None:
    rows = "".join(f"p{n},2023-01-01,70,{word}\n" for n, word in enumerate(outcomes))
    result = from_csv(tmp_path, "patient,index_time,weight,outcome\n" + rows)
    table = Vault(tmp_path / "home").read(result.cohort).to_pandas()
    assert sorted(table["outcome"]) == [0, 1]
    assert result.report.positive == 1


@pytest.mark.parametrize("kind", ["float64", "bool", "boolean", "Int8", "object"])
def test_a_label_of_any_type_in_parquet_is_one_or_zero(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame({"patient": ["a", "b", "c"], "index_time": "2023-01-01", "weight": 70.0})
    frame["outcome"] = pd.Series([1, 0, 1]).astype(kind)
    frame.to_parquet(tmp_path / "cohort.parquet")
    source = {"kind": "files", "table": tmp_path / "cohort.parquet"}
    own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
    result = pull_at(plain_study(), own, now=NOW)
    assert Vault(tmp_path / "home").read(result.cohort)["outcome"].to_pylist().count(1) == 2


def test_a_label_that_a_database_keeps_as_a_double_is_one_or_zero(tmp_path: Path, sqlite: Callable[..., str]) -> None:
    create = "CREATE TABLE c (patient TEXT, index_time TEXT, weight REAL, outcome REAL)"
    insert = "INSERT INTO c VALUES ('ann', '2023-01-01', 70.5, 2.0), ('bob', '2023-01-02', 1.0, 0.0)"
    source = {"kind": "sql", "url": sqlite(create, insert), "table": "SELECT * FROM c"}
    own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
    of = plain_study().with_settings(label={"positive": ["2"]})
    assert pull_at(of, own, now=NOW).report.positive == 1


def test_a_word_that_is_neither_yes_nor_no_is_not_taken_for_no(tmp_path: Path) -> None:
    with pytest.raises(CohortRejected, match=r"label outcome is yes or no.*label\.positive"):
        from_csv(tmp_path, "patient,index_time,weight,outcome\na,2023-01-01,70,dead\nb,2023-01-01,70,alive\n")


def test_a_csv_with_semicolons_and_decimal_commas_is_read_and_said_to_be(tmp_path: Path) -> None:
    text = "patient;index_time;weight;outcome\na;2023-01-01;70,5;1\nb;2023-01-01;1;0\n"
    result = from_csv(tmp_path, text)
    assert sorted(Vault(tmp_path / "home").read(result.cohort)["weight"].to_pylist()) == [1.0, 70.5]
    assert any("';' between columns and ',' before decimals" in note for note in result.report.notes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "patient,index_time,weight,outcome,weight\na,2023-01-01,1,0,2\n",
            "weight is the name of more than one column",
        ),
        (
            "patient,index_time,weight,outcome,Weight\na,2023-01-01,1,0,2\n",
            "weight is the name of more than one column",
        ),
        ('patient,index_time,weight,outcome\n"a,2023-01-01,1,0\nb,2023-01-01,1,0\n', "is not closed"),
    ],
)
def test_a_table_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SourceFailed, match=says):
        from_csv(tmp_path, text)


def test_two_columns_of_one_name_in_a_query_are_refused(tmp_path: Path, sqlite: Callable[..., str]) -> None:
    url = sqlite("CREATE TABLE c (patient TEXT, index_time TEXT, weight REAL, outcome REAL)")
    source = {"kind": "sql", "url": url, "table": "SELECT *, weight AS WEIGHT FROM c"}
    own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
    with pytest.raises(SourceFailed, match="query for table: weight is the name of more than one column"):
        pull_at(plain_study(), own, now=NOW)


def test_a_table_without_patients_says_so_and_takes_every_row_for_one(tmp_path: Path) -> None:
    text = "weight,outcome\n70,1\n60,0\n"
    with pytest.raises(SourceFailed, match="column patient is missing"):
        from_csv(tmp_path, text)
    result = from_csv(tmp_path, text, patient_column=None, index_time_column=None)
    assert result.cohort.rows == 2
    assert any("every row counts as one" in note for note in result.report.notes)


def test_a_site_may_bring_a_finished_table_to_a_study_with_a_definition(tmp_path: Path) -> None:
    (tmp_path / "cohort.csv").write_text(TABLE)
    own = SiteSettings(name="n", home=tmp_path / "home", source={"kind": "files", "table": tmp_path / "cohort.csv"})
    assert pull_at(study(), own, now=NOW).cohort.rows == 2
