"""A made-up history as the finished table of its study, made by the same engine that reads every other form of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from spinney.cohort.engine import build
from spinney.cohort.events import stage
from spinney.cohort.selected_events import Maps, select_events
from spinney.connectors.duck import open_bench
from spinney.connectors.sources import Pulled
from spinney.demo.history import MadeUpHistory
from spinney.study.study import Study

MOMENTS = ("time", "recorded", "until", "died")
"""Columns of a history that are instants, in UTC."""


def maps_of(history: MadeUpHistory) -> Maps:
    """What the hospital's codes and units mean."""
    habits = history.hospital.habits
    return Maps(habits.code_map(history.hospital.name), habits.unit_map(), habits.assumed_units())


def finished_table(history: MadeUpHistory, study: Study) -> pd.DataFrame:
    """A row per stay whose outcome is known: patient, index time, features and label."""
    now = pd.Timestamp.now("UTC").to_pydatetime()
    with TemporaryDirectory(prefix="spinney-world-") as name:
        folder = Path(name)
        files = _write({"Patient": history.patients, **history.events}, folder)
        with open_bench(folder, history.hospital.timezone) as bench:  # a study's days are those of the hospital
            staged = stage(bench, Pulled(files), folder)
            relevant = select_events(bench, staged, study, maps_of(history), now, folder / "relevant")
            table: pd.DataFrame = build(bench, relevant, study).table.to_pandas()
    ripe = table[table["ripe"]].drop(columns="ripe")
    return ripe.sort_values(list(ripe.columns), ignore_index=True)  # whatever order the engine works in


def write_study_table(history: MadeUpHistory, study: Study, path: Path, *, drop_empty: bool = False) -> None:
    """As CSV. `drop_empty`: a feature that the hospital never measures is no column, as in tables made by hand."""
    table = finished_table(history, study)
    if drop_empty:
        table = table.drop(columns=[column for column in table if table[column].isna().all()])
    moments = table["index_time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    table.assign(index_time=moments).astype({study.label.name: int}).to_csv(path, index=False, lineterminator="\n")


def _write(frames: Mapping[str, pd.DataFrame], folder: Path) -> dict[str, tuple[Path, ...]]:
    files: dict[str, tuple[Path, ...]] = {}
    for kind, rows in frames.items():
        files[kind] = (folder / f"{kind}.parquet",)
        rows = rows.drop(columns="number", errors="ignore").astype({"patient": str})
        moments = {name: rows[name].dt.tz_localize("UTC") for name in MOMENTS if name in rows}
        rows.assign(**moments).to_parquet(files[kind][0], index=False)
    return files
