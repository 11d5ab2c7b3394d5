"""A night's scoring: many rows through a champion, beside scikit-learn's `predict_proba` of a forest of the same size.

    python -m benchmarks.scoring [--turns 3] [--quick] [--json result.json] [--write]

Both grow on the same rows with the same settings and score the same data frame, each in a process of its own, in turns.
Peak memory is what the process needs beyond having the frame and the model.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from benchmarks.federations import unit_grid
from benchmarks.harness import Figure, Measured, command, table
from spinney.choice.model import FederatedForest
from spinney.forest.export import export_forest
from spinney.forest.grow import grow
from spinney.study.settings import Feature, ForestSettings

COLUMNS = 30
NAMES = [f"x{place}" for place in range(COLUMNS)]
WHO = ("spinney", "scikit-learn")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 1_000_000
    trees: int = 400
    grown_rows: int = 20_000
    depth: int = 12
    turns: int = 3


QUICK = Sizes(rows=50_000, trees=20, grown_rows=4_000, turns=1)


@dataclass(frozen=True)
class Turn:
    """One process's measurement."""

    seconds: float
    processor_seconds: float
    peak_mib: float
    nodes: int
    mean_said: float


def training(sizes: Sizes) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    X, y = make_classification(sizes.grown_rows, COLUMNS, n_informative=12, flip_y=0.1, random_state=0)
    scaled = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return scaled.astype(np.float32), y.astype(np.int8)


def frame_of(sizes: Sizes) -> pd.DataFrame:
    """Rows like those that the forests were grown on, in any order."""
    X, _ = training(sizes)
    rng = np.random.default_rng(1)
    rows = X[rng.integers(0, len(X), sizes.rows)] + rng.normal(0, 0.02, (sizes.rows, COLUMNS)).astype(np.float32)
    return pd.DataFrame(np.clip(rows, 0, 1).astype(np.float64), columns=NAMES)


def grown_by_spinney(sizes: Sizes) -> tuple[Any, int]:
    X, y = training(sizes)
    settings = ForestSettings(trees=sizes.trees, max_depth=sizes.depth, min_samples_leaf=5)
    people = np.arange(len(y))
    rounding = unit_grid(COLUMNS)
    grown = grow(X, y, people, settings, 0, 2, rounding=rounding, floor=5)
    forest = export_forest(grown.trees, grown.drawn, X, y, people, floor=5, rounding=rounding, jobs=2)
    features = [Feature(name=name, kind="continuous", range=(0, 1)) for name in NAMES]
    weights = np.linspace(0.5, 1, len(forest))
    model = FederatedForest.from_trees(forest, ["here"] * len(forest), weights, features, calibration=(1.1, 0.1))
    return model, len(forest.feature)


def grown_by_scikit(sizes: Sizes) -> tuple[Any, int]:
    X, y = training(sizes)
    forest = RandomForestClassifier(
        sizes.trees, max_depth=sizes.depth, min_samples_leaf=5, max_features="sqrt", random_state=0, n_jobs=2
    ).fit(pd.DataFrame(X, columns=NAMES), y)
    forest.n_jobs = 1
    return forest, sum(tree.tree_.node_count for tree in forest.estimators_)


GROWN: dict[str, Callable[[Sizes], tuple[Any, int]]] = dict(zip(WHO, (grown_by_spinney, grown_by_scikit), strict=True))


class Peak:
    """The largest resident memory while something runs, looked at every 5 ms: `ru_maxrss` never falls."""

    def __enter__(self) -> Peak:
        self.before = self.most = resident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, resident())

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def mib(self) -> float:
        return (self.most - self.before) / 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def score(who: str, sizes: Sizes, results: Any) -> None:
    """In a process of its own."""
    model, nodes = GROWN[who](sizes)
    frame = frame_of(sizes)
    model.predict_proba(frame.head(1000))
    with Peak() as peak:
        wall, processor = time.perf_counter(), time.process_time()
        said = model.predict_proba(frame)
        spent = time.perf_counter() - wall, time.process_time() - processor
    results.put(Turn(*spent, peak.mib, nodes, float(np.round(said[:, 1].mean(), 4))))


def in_turns(sizes: Sizes) -> dict[str, list[Turn]]:
    """Who goes first changes from turn to turn."""
    context, turns = multiprocessing.get_context("spawn"), {who: list[Turn]() for who in WHO}
    for number in range(sizes.turns):
        for who in WHO if number % 2 else reversed(WHO):
            results = context.Queue()
            process = context.Process(target=score, args=(who, sizes, results))
            process.start()
            turns[who].append(results.get(timeout=1800))
            process.join()
    return turns


def figures_of(sizes: Sizes, turns: dict[str, list[Turn]]) -> dict[str, Figure]:
    """By name: what each took, and how many times as fast spinney was in the same turn."""
    found = []
    for who in WHO:
        wall, processor = (tuple(getattr(one, what) for one in turns[who]) for what in CLOCKS)
        found += [
            Figure(f"{who}/wall", "s", wall),
            Figure(f"{who}/processor", "s", processor),
            Figure(f"{who}/rows per second", "/s", tuple(sizes.rows / one for one in wall), "more"),
            Figure(f"{who}/peak memory", "MiB", tuple(one.peak_mib for one in turns[who])),
        ]
    for what, label in zip(CLOCKS, ("wall", "processor"), strict=True):
        pairs = zip(turns["scikit-learn"], turns["spinney"], strict=True)
        ratios = tuple(getattr(theirs, what) / getattr(ours, what) for theirs, ours in pairs)
        found.append(Figure(f"scikit-learn / spinney/{label}", "x", ratios, "more"))
    return {one.name: one for one in found}


CLOCKS = ("seconds", "processor_seconds")


def measure(asked: argparse.Namespace) -> Measured:
    """Rates, memory and ratios."""
    sizes = QUICK if asked.quick else Sizes()
    sizes = replace(sizes, turns=asked.turns or sizes.turns)
    turns = in_turns(sizes)
    found = figures_of(sizes, turns)
    rows = [
        [
            who,
            f"{turns[who][0].nodes:,}",
            f"{found[f'{who}/rows per second'].median:,.0f}",
            found[f"{who}/wall"].told(".1f"),
            found[f"{who}/processor"].told(".1f"),
            f"{found[f'{who}/peak memory'].median:,.0f}",
        ]
        for who in WHO
    ]
    head = ["", "nodes", "rows per second", "wall s", "processor s", "peak MiB beyond frame and model"]
    wall, processor = (found[f"scikit-learn / spinney/{label}"].told() for label in ("wall", "processor"))
    size = f"{sizes.rows:,} rows x {COLUMNS} features, {sizes.trees} trees, one job; median of {sizes.turns} turns"
    speed = f"spinney is {wall} times as fast in wall time and {processor} in processor time."
    return Measured([*found.values()], f"{size} (smallest to largest).\n\n{table(head, rows)}\n\n{speed}")


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, help="how often each of the two is measured")


if __name__ == "__main__":
    command("scoring", __doc__, measure, _more)
