"""How a model does once it is in use: what it said is held against what happened, when that is known.

Rows are taken newest first into windows, each just large enough to judge: so the newest window is always up to date,
and a busy hospital sees more of them. The champion is below its promise when a window's AUROC lies beyond noise below
the one that was measured when the model was registered, or when it says far more or fewer events than happen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from spinney.choice.intervals import intervals
from spinney.choice.metrics import Figure, weighted_auroc
from spinney.cohort.drift import Drift, drift
from spinney.cohort.vault import Vault
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.encode import encode_label
from spinney.scoring.predictions import in_utc
from spinney.study.settings import Choice
from spinney.study.study import Study

MOST_WINDOWS = 12
FEWEST_ROWS = 50
LARGEST_GAP = 0.05
NORMAL_99 = 2.5758


@dataclass(frozen=True)
class Window:
    """Rows whose outcome is known by now, with index events from one day to another."""

    first: date
    last: date
    rows: int
    auroc: Figure
    predicted: float  # mean probability
    observed: float  # share of events
    off: bool  # the two differ by more than a little and more than chance would do


@dataclass(frozen=True)
class Watch:
    """The champion over time, oldest window first."""

    version: str
    promise: Figure | None  # its AUROC when it was registered; None: there were too few test patients
    windows: tuple[Window, ...]
    known: int  # predictions whose outcome is known
    waiting: int  # predictions whose outcome is not known yet
    drift: Drift | None = None  # between the patients that it was grown on and those that are scored now

    @property
    def alerts(self) -> tuple[str, ...]:
        """What somebody must hear, in words and figures; empty: the champion keeps its promise."""
        if not self.windows:
            return ()
        newest, words = self.windows[-1], []
        if self.promise is not None and newest.auroc.high < self.promise.value:
            words.append(
                f"version {self.version} is below its promise: AUROC {newest.auroc.value:.2f} "
                f"({newest.auroc.low:.2f} to {newest.auroc.high:.2f}) since {newest.first}, "
                f"{self.promise.value:.2f} when it was registered"
            )
        if newest.off:
            words.append(
                f"version {self.version} is no longer calibrated: it says {newest.predicted:.0%} on average "
                f"and {newest.observed:.0%} happen since {newest.first}"
            )
        return tuple(words)

    @property
    def wishes_a_round(self) -> bool:
        """Whether a model grown anew is called for."""
        return bool(self.alerts)


def windows_of(told: pd.DataFrame, choice: Choice, seed: int = 0) -> tuple[Window, ...]:
    """Windows over rows with `patient`, `index_time`, `probability` and `outcome` (0 or 1), oldest window first."""
    ordered = told.sort_values(["index_time", "patient"], ascending=False, kind="stable")
    blocks = list(_blocks(ordered, choice.fewest_test_patients))[:MOST_WINDOWS]
    return tuple(_window(block, choice.bootstrap, seed) for block in reversed(blocks))


def _blocks(newest_first: pd.DataFrame, fewest: int) -> Iterator[pd.DataFrame]:
    """Blocks with enough rows, and enough patients of both classes; what is left over at the old end is none."""
    start, seen = 0, (set[str](), set[str]())
    pairs = zip(newest_first["patient"], newest_first["outcome"], strict=True)
    for place, (patient, outcome) in enumerate(pairs, start=1):
        seen[int(outcome)].add(patient)
        if place - start >= FEWEST_ROWS and min(map(len, seen)) >= fewest:
            yield newest_first.iloc[start:place]
            start, seen = place, (set(), set())


def _window(rows: pd.DataFrame, draws: int, seed: int) -> Window:
    y, said = rows["outcome"].to_numpy(dtype=np.int8), rows["probability"].to_numpy(dtype=np.float64)
    ranking = {"auroc": weighted_auroc}
    spans = intervals(y, {"model": said}, rows["patient"].to_numpy(str), ranking, resamples=draws, seed=seed)
    gap, error = abs(said.mean() - y.mean()), math.sqrt(float(np.sum(said * (1 - said)))) / len(rows)
    return Window(
        rows["index_time"].min().date(),
        rows["index_time"].max().date(),
        len(rows),
        spans["model"]["auroc"],
        float(said.mean()),
        float(y.mean()),
        bool(gap > max(LARGEST_GAP, NORMAL_99 * error)),
    )


def watched(vault: Vault, study: Study, told: pd.DataFrame, version: int, promise: Figure | None) -> Watch:
    """Hold what a version has told (`predictions`) against the newest cohort that passed its checks."""
    pulled = [ref for ref in vault.cohorts(study.name) if ref.study == study.digest]
    cohorts = [
        ref for ref in pulled if vault.is_accepted(ref)
    ] or pulled  # scores alone make cohorts that nobody checks
    known = told.iloc[:0].assign(outcome=0)
    newest = vault.newest_whole(cohorts)
    if newest:
        frame = newest[1].select(["patient", "index_time", study.label.name]).to_pandas()
        frame["index_time"] = in_utc(frame["index_time"])
        frame["outcome"] = encode_label(frame, study.label)
        happened = frame.groupby(["patient", "index_time"], as_index=False)["outcome"].max()
        known = told.merge(happened, on=["patient", "index_time"], how="inner")
    windows = windows_of(known, study.choice, study.split.seed)
    return Watch(str(version), promise, windows, len(known), len(told) - len(known), _moved(vault, study, newest))


def promised(evidence: Mapping[str, Any]) -> Figure | None:
    """The AUROC that a version was registered with, from its evidence."""
    figure = (evidence.get("auroc_intervals") or {}).get("chosen")
    return Figure(**figure) if figure and None not in figure.values() else None


def _moved(vault: Vault, study: Study, newest: tuple[CohortRef, pa.Table] | None) -> Drift | None:
    still_open = [ref for ref in vault.cohorts(study.name, ripe=False) if ref.study == study.digest and ref.rows]
    tonight = vault.newest_whole(still_open)
    return None if newest is None or tonight is None else drift(newest[1], tonight[1], study)
