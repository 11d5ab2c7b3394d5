"""What is missing stays missing, unless the study says how it is filled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.cohort.vault import Vault
from spinney.rows.parts import Part, parts_by_hash
from tests.made_up import RIPENER, encounter, feature, frame, observation, patient, pulled, study


def many(people: int, every: int) -> list[Any]:
    """Two stays each; every so many people have a weight, and only before their first one."""
    resources: list[Any] = [RIPENER]
    for number in range(people):
        who = f"p{number}"
        stays = [encounter(f"2023-0{month}-01", f"2023-0{month}-05", who=who) for month in (1, 3)]
        weight = [observation("2023-01-02", 60.0 + number, who=who)] if number % every == 0 else []
        resources += [patient(who), *stays, *weight]
    return resources


def test_missing_values_are_left_missing_unless_the_study_says_otherwise(tmp_path: Path) -> None:
    rows = frame(tmp_path, study(feature("weight", "last", window="10d")), many(40, 2))
    assert rows["weight"].isna().sum() == 60


def test_missing_values_are_filled_forward_and_then_with_the_median_of_training_rows(tmp_path: Path) -> None:
    of = study(feature("weight", "last", window="10d"), imputation="forward-fill-then-median")
    resources = many(40, 2)
    result = pulled(tmp_path, of, resources)
    vault = Vault(tmp_path / "home")
    rows = vault.read(result.cohort).to_pandas()
    trains = parts_by_hash(rows["patient"].tolist(), vault.key, of.split) == Part.TRAINING
    weighed = rows["patient"].isin(vault.pseudonyms(pa.array([f"p{n}" for n in range(0, 40, 2)])).to_pylist())
    assert result.report.filled["weight"] == (0.25, 0.5)
    assert rows["weight"][~weighed].unique().tolist() == [np.median(rows["weight"][weighed & trains])]
