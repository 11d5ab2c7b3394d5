"""Trees that travel: their bytes, scoring, streaming and voting, each beside scikit-learn in the same run.

    python -m benchmarks.core [--quick] [--json result.json]

Ratios are of processor time, measured in turns, so that other work on the machine counts as little as possible: the
median of all turns, with the smallest and the largest. What scikit-learn answers is compared, not only timed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pickle
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import confusion_matrix

from spinney import codec
from spinney.export import Rounding, export_forest
from spinney.grow import Grown, grow
from spinney.model import FederatedForest
from spinney.score import BLOCK_ROWS, confusion_counts, stream_counts
from spinney.settings import Feature, ForestSettings
from spinney.tree import Forest

COLUMNS = 30
PRESENT = np.ones(COLUMNS, dtype=bool)
GRID = Rounding(np.full(COLUMNS, 1 / 1000), 0.01)
TURNS = 5
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 100_000
    trees: int = 400
    scored_rows: int = 50_000
    scored_trees: int = 100
    streamed_rows: int = 10_000_000


QUICK = Sizes(rows=20_000, trees=40, scored_rows=20_000, scored_trees=40, streamed_rows=500_000)


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    value: float
    unit: str
    wanted: str = ""
    note: str = ""


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
        return export_forest(*first, self.X, y, patients, floor=floor, rounding=rounding)


def made(sizes: Sizes) -> Wood:
    """A forest of depth 12 on made-up rows with noisy labels, scaled to 0..1."""
    X, y = make_classification(sizes.rows, COLUMNS, n_informative=10, flip_y=0.1, random_state=0)
    X = ((X - X.min(axis=0)) / np.ptp(X, axis=0)).astype(np.float32)
    settings = ForestSettings(trees=sizes.trees, max_depth=12)
    return Wood(X, y, grow(X, y.astype(np.int8), np.arange(len(y)), settings, 0, jobs=-1))


def measure(sizes: Sizes) -> list[Line]:
    """The whole table."""
    wood, growing = timed(lambda: made(sizes))
    forest, exporting = timed(lambda: wood.exported(sizes.trees, 5, GRID))
    data, encoding = timed(lambda: codec.encode(forest, GRID))
    arrived, decoding = timed(lambda: codec.decode(data, GRID, codec.Limits(sizes.trees, 12)))
    assert arrived.digests == forest.digests
    size = f"{sizes.trees} trees on {sizes.rows:,} x {COLUMNS} rows"
    return [
        Line("growing", growing, "s", note=size),
        Line("export", exporting, "s", note=f"{len(forest.feature):,} nodes"),
        Line("encode", encoding, "s"),
        Line("decode", decoding, "s"),
        *sizes_of(wood, data),
        scoring(wood, sizes),
        *streaming(arrived.take(range(sizes.scored_trees)), sizes),
        voting(wood, sizes),
    ]


def sizes_of(wood: Wood, data: bytes) -> list[Line]:
    """Bytes on the wire beside pickled estimators."""
    pickled = pickle.dumps(wood.grown.trees)
    packed = zlib.compress(pickled)
    return [
        Line("bytes of the forest", len(data), "B", note=f"{len(data) / len(wood.grown.trees):,.0f} per tree"),
        Line("pickled estimators / ours", len(pickled) / len(data), "x", ">= 12", f"{len(pickled):,} B"),
        Line("the same, compressed / ours", len(packed) / len(data), "x", note=f"{len(packed):,} B"),
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
    ratio, spread = in_turns(theirs, lambda: confusion_counts(forest, X, y, PRESENT))
    note = f"{spread}; {len(trees)} trees, {len(X):,} rows"
    return Line("confusion counts, scikit-learn / ours", ratio, "x", ">= 2.5", note)


def streaming(forest: Forest, sizes: Sizes) -> list[Line]:
    """Rows that never are in memory together, on one core, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, before, peak = pool.apply(_streamed, (codec.encode(forest, GRID), sizes))
    note = f"{sizes.streamed_rows:,} rows through {len(forest)} trees"
    return [
        Line("streamed rows per second", sizes.streamed_rows / seconds, "/s", note=note),
        Line("peak memory while streaming", peak, "MiB", note=f"{before:,.0f} MiB before the first row"),
    ]


def _streamed(data: bytes, sizes: Sizes) -> tuple[float, float, float]:
    forest = codec.decode(data, GRID, codec.Limits(sizes.trees, 12))
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
    table = pd.DataFrame(wood.X, columns=[feature.name for feature in features])
    assert np.allclose(ours.predict_proba(table), theirs.predict_proba(wood.X), rtol=0, atol=1e-6)
    ratio, spread = in_turns(lambda: theirs.predict_proba(wood.X), lambda: ours.predict_proba(table))
    return Line("predict_proba, scikit-learn / ours", ratio, "x", note=f"{spread}; {len(forest)} trees")


def in_turns(theirs: Callable[[], Any], ours: Callable[[], Any]) -> tuple[float, str]:
    """How many times as fast we are: the median of all turns, and the spread in words."""
    ratios = []
    for _ in range(TURNS):
        times = []
        for run in (theirs, ours):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
        ratios.append(times[0] / times[1])
    return statistics.median(ratios), f"{min(ratios):.2f} to {max(ratios):.2f}"


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """What came out, and the seconds that it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, about half a minute")
    parser.add_argument("--json", type=Path, help="write the table here, too")
    asked = parser.parse_args()
    lines = measure(QUICK if asked.quick else Sizes())
    for line in lines:
        print(f"{line.what:38} {line.value:>14,.2f} {line.unit:4} {line.wanted:7} {line.note}".rstrip())
    if asked.json:
        asked.json.write_text(json.dumps([asdict(line) for line in lines], indent=2) + "\n")


if __name__ == "__main__":
    main()
