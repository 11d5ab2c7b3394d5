"""Encoded cohorts in the vault: the same arrays again, private, and gone with the cohort."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spinney.cohort.encoded import encode_table, read_encoded, write_encoded
from spinney.cohort.vault import Vault
from spinney.errors import SourceFailed
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

WORDS = {"name": "arrays", "features": [{"name": "a", "kind": "binary"}], "label": {"name": "y"}}
STUDY = Study.model_validate(WORDS)
ROWS = 50


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Vault, CohortRef]:
    table = pa.table(
        {
            "patient": [f"p{row // 2}" for row in range(ROWS)],
            "index_time": pa.array(range(ROWS), pa.timestamp("us")),
            "a": [None, 0.0, 1.0, 1.0, 0.0] * (ROWS // 5),
            "y": [0, 1] * (ROWS // 2),
        }
    )
    vault = Vault(tmp_path)
    return vault, write_encoded(vault, vault.write(table, STUDY, None), STUDY)


def test_arrays_come_back_as_they_were(kept: tuple[Vault, CohortRef]) -> None:
    vault, ref = kept
    there, fresh = read_encoded(ref, STUDY), encode_table(vault, ref, STUDY)
    assert there.columns == fresh.columns
    for name in ("X", "y", "patients", "part", "present"):
        np.testing.assert_array_equal(getattr(there, name), getattr(fresh, name))


def test_nobody_else_can_read_them(kept: tuple[Vault, CohortRef]) -> None:
    assert kept[1].path.with_suffix(".npz").stat().st_mode & 0o777 == 0o600


def test_they_are_forgotten_with_the_cohort(kept: tuple[Vault, CohortRef]) -> None:
    vault, ref = kept
    vault.forget(timedelta(0), datetime.now(UTC) + timedelta(days=1))
    with pytest.raises(SourceFailed, match="can't be read"):
        read_encoded(ref, STUDY)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file"])
def test_damaged_arrays_are_not_used(kept: tuple[Vault, CohortRef], content: bytes) -> None:
    kept[1].path.with_suffix(".npz").write_bytes(content)
    with pytest.raises(SourceFailed, match="can't be read"):
        read_encoded(kept[1], STUDY)


def test_arrays_of_another_study_are_not_used(kept: tuple[Vault, CohortRef]) -> None:
    wider = Study.model_validate({**WORDS, "features": [*WORDS["features"], {"name": "b", "kind": "binary"}]})
    with pytest.raises(SourceFailed, match="another study"):
        read_encoded(kept[1], wider)
