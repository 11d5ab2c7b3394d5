"""Trees that travel: their bytes, scoring, streaming and voting, each beside scikit-learn in the same run.

    python -m benchmarks.core

Ratios are of processor time, measured in turns, so that other work on the machine counts as little as possible: the
median of all turns, with the smallest and the largest. What scikit-learn answers is compared, not only timed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import confusion_matrix

from benchmarks.federations import unit_grid
from benchmarks.harness import Figure, Measured, command, table
from spinney.choice.model import FederatedForest
from spinney.forest import codec
from spinney.forest.export import Rounding, export_forest
from spinney.forest.grow import Grown, grow
from spinney.forest.score import BLOCK_ROWS, confusion_counts, stream_counts
from spinney.forest.tree import Forest
from spinney.study.settings import Feature, ForestSettings

COLUMNS = 30
PRESENT = np.ones(COLUMNS, dtype=bool)
GRID = unit_grid(COLUMNS)
TURNS = 5
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 100_000
    trees: int = 400
    scored_rows: int = 50_000
    scored_trees: int = 100
    grown_trees: int = 10
    streamed_rows: int = 10_000_000


QUICK = Sizes(rows=10_000, trees=20, scored_rows=10_000, scored_trees=20, streamed_rows=200_000)


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    figure: Figure
    note: str = ""

    @property
    def cells(self) -> list[str]:
        """As the table shows it."""
        form = ",.0f" if self.figure.median >= 1000 else ",.2f"
        return [self.figure.name, self.figure.told(form), self.figure.unit, self.note]


def line(what: str, unit: str, *runs: float, note: str = "", better: Literal["less", "more"] = "less") -> Line:
    return Line(Figure(what, unit, runs, better), note)


@dataclass(frozen=True)
class Wood:
    """What every measurement uses: rows, and one forest grown on them."""

    X: np.ndarray[Any, np.dtype[np.float32]]
    y: np.ndarray[Any, np.dtype[np.int64]]
    grown: Grown

    def exported(self, trees: int, floor: int, rounding: Rounding | None) -> Forest:
        """The first trees, as they leave the house."""
        y, patients = self.y.astype(np.int8), np.arange(len(self.y))
        first = self.grown.trees[:trees], self.grown.drawn[:trees]
        return export_forest(*first, self.X, y, patients, floor=floor, rounding=rounding, jobs=-1)


def made(sizes: Sizes) -> Wood:
    """A forest of depth 12 on made-up rows with noisy labels, scaled to 0..1."""
    X, y = make_classification(sizes.rows, COLUMNS, n_informative=10, flip_y=0.1, random_state=0)
    X = ((X - X.min(axis=0)) / np.ptp(X, axis=0)).astype(np.float32)
    settings = ForestSettings(trees=sizes.trees, max_depth=12, engine="scikit-learn")
    return Wood(X, y, grow(X, y.astype(np.int8), np.arange(len(y)), settings, 0, jobs=-1))


def growing_both(wood: Wood, sizes: Sizes) -> Line:
    """Our own grower beside scikit-learn's, the same bootstraps, both on one core."""
    X, y, people = (
        wood.X[: sizes.scored_rows],
        wood.y[: sizes.scored_rows].astype(np.int8),
        np.arange(sizes.scored_rows),
    )

    def by(engine: Literal["spinney", "scikit-learn"]) -> Grown:
        settings = ForestSettings(trees=sizes.grown_trees, engine=engine)
        return grow(X, y, people, settings, 0, rounding=GRID, floor=5)

    by("spinney")
    ratios = in_turns(lambda: by("scikit-learn"), lambda: by("spinney"))
    note = f"{sizes.grown_trees} trees, {sizes.scored_rows:,} rows"
    return line("growing, scikit-learn / ours", "x", *ratios, note=note, better="more")


def measure(asked: argparse.Namespace) -> Measured:
    """The whole table."""
    lines = measured(QUICK if asked.quick else Sizes())
    told = table(["", "median (smallest to largest)", "unit", ""], [one.cells for one in lines])
    return Measured([one.figure for one in lines], told)


def measured(sizes: Sizes) -> list[Line]:
    """Line by line."""
    wood, growing = timed(lambda: made(sizes))
    forest, exporting = timed(lambda: wood.exported(sizes.trees, 5, GRID))
    data, encoding = timed(lambda: codec.pack_forest(forest, GRID))
    arrived, decoding = timed(lambda: codec.unpack_forest(data, GRID, codec.TreeLimits(sizes.trees, 12)))
    assert arrived.digests == forest.digests
    size = f"{sizes.trees} trees on {sizes.rows:,} x {COLUMNS} rows"
    return [
        line("growing by scikit-learn", "s", growing, note=size),
        growing_both(wood, sizes),
        line("export", "s", exporting, note=f"{len(forest.feature):,} nodes"),
        line("encode", "s", encoding),
        line("decode", "s", decoding),
        *sizes_of(wood, data),
        scoring(wood, sizes),
        *streaming(arrived.take(range(sizes.scored_trees)), sizes),
        voting(wood, sizes),
    ]


def sizes_of(wood: Wood, data: bytes) -> list[Line]:
    """Bytes on the wire beside pickled estimators."""
    pickled = pickle.dumps(wood.grown.trees)
    packed = zlib.compress(pickled)
    each = f"{len(data) / len(wood.grown.trees):,.0f} per tree"
    return [
        line("bytes of the forest", "B", len(data), note=each),
        line("pickled estimators / ours", "x", len(pickled) / len(data), note=f"{len(pickled):,} B", better="more"),
        line("the same, compressed / ours", "x", len(packed) / len(data), note=f"{len(packed):,} B", better="more"),
    ]


def scoring(wood: Wood, sizes: Sizes) -> Line:
    """Confusion counts of every tree on one core, beside a loop over scikit-learn's trees."""
    X, y = wood.X[: sizes.scored_rows], wood.y[: sizes.scored_rows]
    trees = wood.grown.trees[: sizes.scored_trees]
    forest = wood.exported(len(trees), 1, None)

    def theirs() -> list[Any]:
        return [confusion_matrix(y, tree.predict(X)) for tree in trees]

    found = confusion_counts(forest, X, y, PRESENT)
    assert np.array_equal(found, [(m[1, 1], m[0, 0], m[0, 1], m[1, 0]) for m in theirs()])
    ratios = in_turns(theirs, lambda: confusion_counts(forest, X, y, PRESENT))
    note = f"{len(trees)} trees, {len(X):,} rows"
    return line("confusion counts, scikit-learn / ours", "x", *ratios, note=note, better="more")


def streaming(forest: Forest, sizes: Sizes) -> list[Line]:
    """Rows that never are in memory together, on one core, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, before, peak = pool.apply(_streamed, (codec.pack_forest(forest, GRID), sizes))
    note = f"{sizes.streamed_rows:,} rows through {len(forest)} trees"
    return [
        line("streamed rows per second", "/s", sizes.streamed_rows / seconds, note=note, better="more"),
        line("peak memory while streaming", "MiB", peak, note=f"{before:,.0f} MiB before the first row"),
    ]


def _streamed(data: bytes, sizes: Sizes) -> tuple[float, float, float]:
    forest = codec.unpack_forest(data, GRID, codec.TreeLimits(sizes.trees, 12))
    blocks, before = _blocks(sizes.streamed_rows), _memory("VmRSS")
    start = time.perf_counter()
    counts = stream_counts(forest, blocks, PRESENT)
    seconds = time.perf_counter() - start
    assert (counts.sum(axis=1) == sizes.streamed_rows).all()
    return seconds, before, _memory("VmHWM")


def _blocks(rows: int) -> Iterator[tuple[Any, Any, None]]:
    rng = np.random.default_rng(0)
    for start in range(0, rows, BLOCK_ROWS):
        X = rng.random((min(BLOCK_ROWS, rows - start), COLUMNS), dtype=np.float32)
        yield X, (X[:, 0] > 0.5).astype(np.int8), None


def _memory(name: str) -> float:
    """This process's own memory now (VmRSS) or at most (VmHWM) in MiB; getrusage would count the parent's."""
    words = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(words[name].split()[0]) / 1024


def voting(wood: Wood, sizes: Sizes) -> Line:
    """predict_proba of a federated forest beside a random forest of the same trees, both on one core."""
    features = [Feature(name=f"x{place}", kind="continuous", range=(0, 1)) for place in range(COLUMNS)]
    forest = wood.exported(sizes.trees, 1, None)
    ours = FederatedForest.from_trees(forest, ["home"] * len(forest), np.ones(len(forest)), features)
    theirs = RandomForestClassifier(1, n_jobs=1).fit(wood.X[:100], wood.y[:100])
    theirs.estimators_ = wood.grown.trees
    frame = pd.DataFrame(wood.X, columns=[feature.name for feature in features])
    assert np.allclose(ours.predict_proba(frame), theirs.predict_proba(wood.X), rtol=0, atol=1e-6)
    ratios = in_turns(lambda: theirs.predict_proba(wood.X), lambda: ours.predict_proba(frame))
    return line("predict_proba, scikit-learn / ours", "x", *ratios, note=f"{len(forest)} trees", better="more")


def in_turns(theirs: Callable[[], Any], ours: Callable[[], Any]) -> list[float]:
    """How many times as fast we are, turn by turn."""
    ratios = []
    for _ in range(TURNS):
        times = []
        for run in (theirs, ours):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
        ratios.append(times[0] / times[1])
    return ratios


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """What came out, and the seconds that it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    command("core", __doc__, measure)
