"""How far a round is from what it can't do without: fitting trees, walking rows down them, saying what they are.

    python -m benchmarks.limit

**Time.** A simulated round with one worker is watched from a second thread a few hundred times a second; each look
goes to the innermost part of Spinney on the stack. *Growing* is scikit-learn's own fit, *walking* its compiled
traversal; the rest is ours. **Bytes.** What a forest has to say is which nodes are leaves, which feature and threshold
stand at a split, where missing values go, and a leaf's probability. The yardstick is the entropy of each of these taken
one by one, with the probability of each symbol counted in the forest itself and for free; a packer that sees
repetitions can be below it.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType

import numpy as np
from numpy.typing import NDArray

import spinney
from benchmarks.federations import breast_cancer, made_up
from benchmarks.harness import Figure, Measured, command, table
from spinney.federation.forest_site import rounding_of
from spinney.forest import codec
from spinney.forest.export import Rounding, export_forest
from spinney.forest.grow import grow
from spinney.forest.tree import LEAF, Forest
from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.trial.simulate import simulate

ROOM = str(Path(spinney.__file__).parent)
EVERY = 0.003
ROOMS = {  # modules by what they are for
    "growing": {"grow"},
    "walking": {"traverse"},
    "export: recount, collapse, round": {"export"},
    "packing and checking trees": {"codec", "tree"},
    "hiding and summing counts": {"secure_sum", "summing"},
    "counting": {"score", "votes"},
    "choosing and measuring": {
        "personalise", "judge", "metrics", "intervals", "measure", "curves", "incumbent", "model", "weigh", "evidence",
        "outcome",
    },
}  # fmt: skip


class Watch(threading.Thread):
    """Looks at the other threads every few milliseconds and keeps the innermost module of Spinney on each stack."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: Counter[str] = Counter()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(EVERY):
            for thread, frame in sys._current_frames().items():
                if thread != self.ident and (module := _innermost(frame)):
                    self.seen[module] += 1

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def shares(self) -> dict[str, float]:
        """By what the modules are for."""
        named = {module: name for name, modules in ROOMS.items() for module in modules}
        counts = Counter[str]()
        for module, count in self.seen.items():
            counts[named.get(module, "the rest of Spinney")] += count
        total = counts.total()
        return {name: counts[name] / total for name in (*ROOMS, "the rest of Spinney")}


def _innermost(frame: FrameType | None) -> str:
    """The module whose line is being run; the simulation itself only waits for its sites."""
    while frame:
        file = frame.f_code.co_filename
        if file.startswith(ROOM):
            module = Path(file).stem
            return "" if module == "simulate" and frame.f_code.co_name == "ask" else module
        frame = frame.f_back
    return ""


def watched(study: Study, cohorts: Mapping[str, Cohort]) -> tuple[float, dict[str, float]]:
    """Seconds of a round, and the shares of its parts."""
    with Watch() as watch:
        began = time.perf_counter()
        simulate(study, cohorts)
        seconds = time.perf_counter() - began
    return seconds, watch.shares()


def packed(study: Study, cohorts: Mapping[str, Cohort]) -> tuple[int, dict[str, float]]:
    """Bytes of all sites' packed forests, and the entropy of what they say, part by part, in bytes."""
    size, said = 0, Counter[str]()
    for cohort in cohorts.values():
        rounding = rounding_of(study, cohort)
        forest = _forest(study, cohort, rounding)
        size += len(codec.pack_forest(forest, rounding))
        said.update(_entropies(forest, rounding))
    return size, dict(said)


def _forest(study: Study, cohort: Cohort, rounding: Rounding) -> Forest:
    rows = cohort.rows(Part.TRAINING)
    _, patients = np.unique(rows.patients, return_inverse=True)
    X = rounding.snapped(rows.X)
    floor = study.privacy.smallest_leaf
    grown = grow(X, rows.y, patients, study.forest, study.split.seed, rounding=rounding, floor=floor)
    return export_forest(grown.trees, grown.drawn, X, rows.y, patients, floor=floor, rounding=rounding)


def _entropies(forest: Forest, rounding: Rounding) -> dict[str, float]:
    split = forest.feature != LEAF
    features = forest.feature[split]
    codes = rounding.nearest(features, forest.threshold[split])
    thresholds = sum(entropy(codes[features == feature]) for feature in np.unique(features))
    return {
        "shape": entropy(split),
        "features": entropy(features),
        "thresholds": float(thresholds),
        "missing": entropy(forest.missing_left[split]),
        "probabilities": entropy(np.rint(forest.probability[~split] / rounding.probability).astype(int)),
    }


def entropy(symbols: NDArray[np.generic]) -> float:
    """Bytes that an ideal packer needs for symbols which it takes one by one."""
    _, counts = np.unique(symbols, return_counts=True)
    return float(-(counts * np.log2(counts / counts.sum())).sum() / 8)


def measure(asked: argparse.Namespace) -> Measured:
    """Time and bytes of a small round and of one with much data."""
    cases = {"4 sites x 25 trees, breast cancer": breast_cancer(4, 25)}
    if not asked.quick:
        cases["4 sites x 100 trees, 10,000 rows each"] = made_up(4, 100, 10_000)
    simulate(*next(iter(cases.values())))  # what is imported and compiled on the way is not what a round costs
    figures: list[Figure] = []
    times, sizes = [], []
    for name, case in cases.items():
        seconds, shares = watched(*case)
        size, said = packed(*case)
        least = sum(said.values())
        floor = shares["growing"] + shares["walking"]
        figures += [
            Figure(f"{name}/growing and walking over all", "share", (floor,), "more"),
            Figure(f"{name}/packed over entropy", "x", (size / least,)),
        ]
        times.append([name, f"{seconds:.2f}", f"{floor:.0%}", *(f"{share:.1%}" for share in shares.values())])
        sizes.append([name, f"{size:,}", f"{least:,.0f}", f"{size / least:.2f}", *_shares(said.values())])
    parts = ["seconds", "growing and walking", *ROOMS, "the rest"]
    bytes_of = ["packed, B", "entropy, B", "packed / entropy", "shape", "features", "thresholds", "missing", "leaves"]
    return Measured(figures, f"{table(['round', *parts], times)}\n\n{table(['forests', *bytes_of], sizes)}")


def _shares(values: Iterable[float]) -> list[str]:
    kept = list(values)
    return [f"{value / sum(kept):.0%}" for value in kept]


if __name__ == "__main__":
    command("limit", __doc__, measure)
