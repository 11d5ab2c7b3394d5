"""A model in use: what it said is held against what happened."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from spinney.choice.metrics import Figure
from spinney.cohort.vault import Vault
from spinney.scoring.monitor import FEWEST_ROWS, MOST_WINDOWS, Watch, promised, watched, windows_of
from spinney.study.settings import Choice
from tests.spinney.in_process import study
from tests.spinney.scoring.tonight import told

CHOICE = Choice(bootstrap=200)
NOW = datetime(2026, 3, 14, tzinfo=UTC)
PROMISE = Figure(0.85, 0.8, 0.9)


def watch(rows: pd.DataFrame, promise: Figure | None = PROMISE) -> Watch:
    return Watch("3", promise, windows_of(rows, CHOICE), len(rows), 0)


def test_windows_go_from_old_to_new_and_are_large_enough_to_judge():
    windows = windows_of(told(400), CHOICE)
    assert 2 <= len(windows) <= MOST_WINDOWS
    assert [one.first for one in windows] == sorted(one.first for one in windows)
    assert all(one.rows >= FEWEST_ROWS for one in windows)
    assert windows[-1].last == told(400)["index_time"].max().date()


def test_too_few_patients_of_a_class_make_no_window_and_no_alert():
    rows = told(200).assign(outcome=0)
    assert windows_of(rows, CHOICE) == ()
    assert watch(rows).alerts == ()


def test_a_champion_that_keeps_its_promise_is_left_in_peace():
    assert not watch(told(400)).wishes_a_round


def test_a_champion_below_its_promise_raises_an_alert_and_wishes_a_round():
    rows = pd.concat(
        [told(300), told(300, skill=0.2, seed=1).assign(index_time=lambda t: t["index_time"] + pd.Timedelta("60D"))]
    )
    alerted = watch(rows)
    assert alerted.wishes_a_round
    assert alerted.alerts[0].startswith("version 3 is below its promise: AUROC 0.")


def test_a_model_that_says_far_more_than_happens_is_no_longer_calibrated():
    alerts = watch(told(600, skill=1.5, shift=0.25)).alerts
    assert any("no longer calibrated" in words for words in alerts)


def test_without_a_promise_only_calibration_can_be_judged():
    assert watch(told(400, skill=0.2), None).alerts == ()


def test_the_promise_is_what_the_version_was_registered_with():
    evidence = {"auroc_intervals": {"chosen": {"value": 0.85, "low": 0.8, "high": 0.9}}}
    assert promised(evidence) == PROMISE
    assert promised({"auroc_intervals": {"chosen": None}}) is None
    assert promised({}) is None


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path)


def cohort(rows: pd.DataFrame) -> pa.Table:
    rng = np.random.default_rng(1)
    values = {f"x{place}": rng.random(len(rows)) for place in range(4)}
    frame = rows[["patient", "index_time"]].assign(**values, y=rows["outcome"].astype(str))
    return pa.Table.from_pandas(frame, preserve_index=False)


def said_about(vault: Vault, rows: pd.DataFrame) -> pd.DataFrame:
    """The predictions as they are kept: of hashed patients."""
    return rows.drop(columns="outcome").assign(patient=vault.pseudonyms(pa.array(rows["patient"])).to_pylist())


def test_outcomes_that_have_arrived_are_held_against_what_was_said(vault: Vault):
    wood = quick_study()
    rows = told(500)
    vault.write(cohort(rows.iloc[:400]), wood, NOW)
    seen = watched(vault, wood, said_about(vault, rows), 3, PROMISE)
    assert (seen.version, seen.known, seen.waiting) == ("3", 400, 100)
    assert sum(one.rows for one in seen.windows) <= 400
    assert seen.windows[-1].auroc.value > 0.8


def test_before_any_outcome_is_known_everything_waits(vault: Vault):
    wood = quick_study()
    seen = watched(vault, wood, said_about(vault, told(50)), 3, PROMISE)
    assert (seen.known, seen.waiting, seen.windows, seen.drift) == (0, 50, (), None)


def test_patients_that_are_scored_now_are_compared_with_those_of_the_cohort(vault: Vault):
    wood = quick_study()
    rows = told(400)
    vault.write(cohort(rows), wood, NOW)
    moved = cohort(rows).drop_columns(["y"])
    moved = moved.set_column(moved.column_names.index("x1"), "x1", pa.array(np.full(400, 0.99)))
    vault.write(moved, wood, NOW, ripe=False)
    seen = watched(vault, wood, said_about(vault, rows), 3, PROMISE)
    assert [one.column for one in seen.drift.shifts if one.noticed] == ["x1"]
    assert seen.drift.distance is None


def quick_study():
    return study(choice={"bootstrap": 200})


def test_an_alert_is_about_the_newest_window_only():
    windows = windows_of(told(400), CHOICE)
    bad = replace(windows[0], auroc=Figure(0.5, 0.4, 0.6))
    assert Watch("3", PROMISE, (bad, *windows[1:]), 400, 0).alerts == ()
