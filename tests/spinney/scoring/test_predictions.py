"""What was said is kept as it was said first, in private, until it is forgotten."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from spinney.scoring.predictions import Predictions, forget_predictions
from tests.spinney.scoring.tonight import told

NOW = datetime(2026, 3, 14, tzinfo=UTC)


def scores(rows: int, probability: float = 0.5) -> pa.Table:
    frame = told(rows)[["patient", "index_time"]].assign(probability=probability, decision=False)
    return pa.Table.from_pandas(frame, preserve_index=False)


def test_the_first_word_about_a_row_stands_and_later_nights_add_what_is_new(tmp_path: Path):
    kept = Predictions(tmp_path, "wood")
    assert kept.add(scores(10), 3, NOW) == 10
    assert kept.add(scores(10, 0.9), 3, NOW) == 0
    assert kept.add(scores(14, 0.9), 3, NOW + timedelta(days=1)) == 4
    assert kept.of(3)["probability"].tolist() == [0.5] * 10 + [0.9] * 4


def test_every_version_speaks_for_itself(tmp_path: Path):
    kept = Predictions(tmp_path, "wood")
    kept.add(scores(10), 3, NOW)
    assert kept.add(scores(10), 4, NOW) == 10
    assert len(kept.of(3)) == len(kept.of(4)) == 10
    assert len(kept.of(5)) == 0


def test_predictions_are_private_and_can_be_forgotten(tmp_path: Path):
    kept = Predictions(tmp_path, "wood")
    kept.add(scores(10), 3, NOW)
    (file,) = (tmp_path / "predictions" / "wood").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert forget_predictions(tmp_path, timedelta(days=30)) == 0
    assert forget_predictions(tmp_path, timedelta(days=30), datetime.now(UTC) + timedelta(days=31)) == 1
    assert len(kept.of(3)) == 0
