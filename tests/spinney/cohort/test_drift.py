"""Tonight's cohort against last night's: quiet when nothing moved, and loud about the column that did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spinney.cohort.drift import LARGE, SLIGHT, cohorts_before, drift
from spinney.cohort.vault import Vault
from spinney.study.study import Study

STUDY = Study.model_validate(
    {
        "name": "nights",
        "features": [
            {"name": "glucose", "kind": "continuous", "range": [0, 400]},
            {"name": "ward", "kind": "categorical", "categories": ["east", "west"]},
            {"name": "smoker", "kind": "binary"},
        ],
        "label": {"name": "died"},
    }
)


def night(seed: int = 0, rows: int = 2000, **changed: Any) -> pa.Table:
    chance = np.random.default_rng(seed)
    columns = {
        "patient": [f"p{row}" for row in range(rows)],
        "index_time": pa.array([None] * rows, pa.timestamp("us")),
        "glucose": chance.normal(100, 20, rows),
        "ward": chance.choice(["east", "west"], rows),
        "smoker": chance.integers(0, 2, rows).astype(float),
        "died": chance.integers(0, 2, rows),
    }
    return pa.table({**columns, **changed})


def noticed(before: pa.Table, now: pa.Table) -> list[str]:
    return [shift.column for shift in drift(before, now, STUDY).shifts if shift.noticed]


def test_the_same_table_has_not_moved() -> None:
    found = drift(night(), night(), STUDY)
    assert [shift.index for shift in found.shifts] == [0.0] * 4
    assert found.distance == 0
    assert found.warnings == ()


@pytest.mark.parametrize("rows", [100, 2000])
def test_chance_alone_is_not_reported(rows: int) -> None:
    assert all(noticed(night(0, rows), night(seed, rows)) == [] for seed in range(1, 11))


def test_the_index_is_the_textbooks() -> None:
    old, new = [0.0] * 1000 + [1.0] * 1000, [0.0] * 1600 + [1.0] * 400
    shift = next(one for one in drift(night(smoker=old), night(smoker=new), STUDY).shifts if one.column == "smoker")
    assert shift.index == pytest.approx((0.8 - 0.5) * np.log(0.8 / 0.5) + (0.2 - 0.5) * np.log(0.2 / 0.5), rel=0.01)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("glucose", np.full(2000, 5.5)),  # another unit
        ("glucose", [None] * 1000 + [100.0] * 1000),
        ("ward", ["east"] * 1900 + ["west"] * 100),
        ("ward", ["north"] * 1000 + ["west"] * 1000),
        ("smoker", [1.0] * 2000),
        ("died", [1] * 1700 + [0] * 300),
    ],
)
def test_a_column_that_moved_is_named(column: str, values: Any) -> None:
    found = drift(night(), night(1, **{column: values}), STUDY)
    assert [shift.column for shift in found.shifts if shift.noticed] == [column]
    assert any(line.startswith(f"{column}: a large shift") for line in found.warnings)


def test_a_shift_below_a_quarter_is_slight() -> None:
    found = drift(night(), night(1, rows=2000, died=[1] * 1400 + [0] * 600), STUDY)
    index = next(shift.index for shift in found.shifts if shift.column == "died")
    assert SLIGHT < index < LARGE
    assert found.warnings[0].startswith("died: a slight shift")


def test_a_site_whose_means_moved_is_told_how_far() -> None:
    found = drift(night(), night(glucose=np.full(2000, 300.0)), STUDY)
    assert found.distance is not None
    assert found.warnings[-1] == f"the characteristic vector moved by {found.distance:.3f}"


def test_cohorts_below_the_smallest_have_no_vector_to_compare() -> None:
    assert drift(night(rows=20), night(rows=20), STUDY).distance is None


def test_a_column_that_only_one_night_has_is_left_to_the_rules() -> None:
    assert noticed(night(), night().drop_columns(["glucose"])) == []


def test_no_warning_quotes_a_value() -> None:
    marked = night(glucose=np.full(2000, 77777.125), ward=["canary"] * 2000)
    words = " ".join(drift(night(), marked, STUDY).warnings)
    assert "glucose" in words
    assert "77777" not in words
    assert "canary" not in words


def test_cohorts_before_are_the_other_ones_of_the_same_study(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    tonight = vault.write(night(2), STUDY, None)
    assert cohorts_before(vault, STUDY, tonight) == []
    older = vault.write(night(0), STUDY, None)
    vault.accept(older)
    newer = vault.write(night(1), STUDY, None)
    vault.accept(newer)
    vault.write(night(4), Study.model_validate({**STUDY.model_dump(), "version": 2}), None)
    assert cohorts_before(vault, STUDY, tonight) == [older, newer]


def test_a_cohort_that_was_refused_is_not_what_the_next_one_is_compared_with(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    good = vault.write(night(0), STUDY, None)
    vault.accept(good)
    vault.write(night(1), STUDY, None)
    assert cohorts_before(vault, STUDY, vault.write(night(2), STUDY, None)) == [good]
