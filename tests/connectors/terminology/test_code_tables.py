"""Lists and hierarchies in CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spinney.connectors.terminology.resolve import resolve
from spinney.errors import StudyInvalid
from spinney.study.codes import CodeSet
from tests.connectors.terminology.sets import ICD, SCT, codes, meaning, value_set


@pytest.mark.parametrize(
    "text",
    [
        f'system,code,name\n{SCT},007,bond\n{ICD},I50*,"failure, heart"\n{SCT},007,again\n',
        f"Code;System\n 007 ;{SCT}\nI50*;{ICD}\n",
        f'concept_code\tvocabulary_id\tname\n007\t{SCT}\ta " quote\nI50*\t{ICD}\tx\n',
        f"\ufeffcode\n{SCT}|007\n{ICD}|I50*\n",
    ],
)
def test_a_list_is_read_whatever_separates_its_columns_and_codes_stay_text(tmp_path: Path, text: str) -> None:
    assert meaning(tmp_path, text) == {ICD: ("I50*",), SCT: ("007",)}


def test_a_parquet_file_is_a_list_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"system": [SCT, SCT], "code": [7, 8]}), tmp_path / "x.parquet")
    assert resolve("it", CodeSet(files=("x.parquet",)), tmp_path).codes == {SCT: ("7", "8")}


TREE = f"system,code,parent\n{SCT},heart,\n{SCT},failure,heart\n{SCT},left,failure\n{SCT},left,side\n{SCT},lung,\n"


def test_a_table_with_parents_is_a_hierarchy(tmp_path: Path) -> None:
    assert meaning(tmp_path, TREE, below=(f"{SCT}|heart",)) == {SCT: ("failure", "heart", "left")}
    whole = value_set(
        "http://a",
        {"system": SCT, "filter": [{"property": "concept", "op": "is-a", "value": "failure"}]},
        codes(SCT, "1"),
    )
    assert meaning(tmp_path, whole, TREE) == {SCT: ("1", "failure", "left")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name\nx\n", "needs a column `code`"),
        (f"system,code\n{SCT},\n,5\n", "2 rows have no system or no code"),
        ("code\n84114007\n", "1 rows have no system or no code"),
        ("system,code\n", "leave no code"),
        ("", "cannot be read as a table|needs a column"),
    ],
)
def test_a_table_without_codes_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(StudyInvalid, match=said):
        meaning(tmp_path, text)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(StudyInvalid, match="cannot be read as a table"):
        resolve("it", CodeSet(files=("x.parquet",)), tmp_path)
