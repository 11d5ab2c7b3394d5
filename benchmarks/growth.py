"""How a simulated round grows with sites, trees, rows and features: seconds, memory, bytes, and fitted exponents.

    python -m benchmarks.growth
    python -m benchmarks.growth --axis rows

One size is changed at a time from a common starting point. Every point runs in a process of its own with one worker,
so that peak memory is its own; seconds are processor time, shared out to the steps in which they were spent. An
exponent is the slope of a straight line in a double-logarithmic plot; the last two points have one of their own,
because a curve that bends shows it there.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from benchmarks.federations import made_up
from benchmarks.harness import Figure, Measured, command, table
from spinney.trial.simulate import simulate

MIB = 1 << 20
STEPS = {"join": "describe", "grow": "grow", "check": "check", "score": "score", "finish": "choose"}


@dataclass(frozen=True)
class Size:
    """One federation."""

    sites: int = 4
    trees: int = 25
    rows: int = 4_000  # of all sites together
    features: int = 30


AXES: Mapping[str, Sequence[Size]] = {
    "sites": [Size(sites=n, rows=500 * n) for n in (2, 4, 8, 16, 32, 64)],
    "trees": [Size(trees=n) for n in (10, 30, 100, 300, 1_000)],
    "rows": [Size(rows=n, trees=10) for n in (1_000, 10_000, 100_000, 1_000_000)],
    "features": [Size(features=n) for n in (10, 30, 100, 300, 1_000)],
}


@dataclass(frozen=True)
class Cost:
    """What one federation took."""

    seconds: Mapping[str, float]  # by step
    mib: float  # peak beyond what imports and the tables took
    sent: int  # bytes between sites

    @property
    def total(self) -> float:
        """Processor seconds of all steps."""
        return sum(self.seconds.values())


def cost(size: Size) -> Cost:
    """Simulate one federation; meant for a fresh process."""
    study, cohorts = made_up(size.sites, size.trees, size.rows // size.sites, size.features, sum_for(size.sites))
    began, seconds = time.process_time(), defaultdict[str, float](float)
    before = _peak()

    def passed(step: str, done: int, asked: int) -> None:  # noqa: ARG001 - the signature is the progress bar's
        nonlocal began
        now = time.process_time()
        seconds[STEPS.get(step, "sum")] += now - began
        began = now

    sent = simulate(study, cohorts, progress=passed).parcel_bytes
    return Cost(dict(seconds), _peak() - before, sent)


def sum_for(sites: int) -> str:
    """A masked sum needs three sites."""
    return "masked" if sites > 2 else "trusted-third-party"


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of a straight line through logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def measure(asked: argparse.Namespace) -> Measured:
    """All axes, or the one that was asked for."""
    figures, told = [], []
    context = get_context("forkserver" if asked.quick else "spawn")  # imports take longer than small federations
    context.set_forkserver_preload(["benchmarks.federations", "spinney.trial.simulate"])
    for axis in asked.axis or AXES:
        sizes = AXES[axis][:2] if asked.quick else AXES[axis]
        costs = []
        for size in sizes:
            with ProcessPoolExecutor(1, mp_context=context) as fresh:
                costs.append(fresh.submit(cost, size).result())
            name = f"{axis} {getattr(size, axis):,}"
            print(f"{name}: {costs[-1].total:.1f} s", file=sys.stderr, flush=True)
            figures += [
                Figure(f"{name}/processor", "s", (costs[-1].total,)),
                Figure(f"{name}/peak memory", "MiB", (costs[-1].mib,)),
                Figure(f"{name}/sent between sites", "B", (float(costs[-1].sent),)),
            ]
        told.append(_table(axis, sizes, costs))
    return Measured(figures, "\n\n".join(told))


def _table(axis: str, sizes: Sequence[Size], costs: Sequence[Cost]) -> str:
    steps = [step for step in dict.fromkeys([*STEPS.values(), "sum"]) if any(step in cost.seconds for cost in costs)]
    rows = [
        [
            f"{getattr(size, axis):,}",
            *(f"{cost.seconds.get(step, 0):.2f}" for step in steps),
            f"{cost.total:.2f}",
            f"{cost.mib:,.0f}",
            f"{cost.sent / 1e3:,.1f}",
        ]
        for size, cost in zip(sizes, costs, strict=True)
    ]
    along = [float(getattr(size, axis)) for size in sizes]
    columns = [[cost.seconds.get(step, 0.0) for cost in costs] for step in steps]
    columns += [[getattr(cost, part) for cost in costs] for part in ("total", "mib", "sent")]
    for name, kept in (("exponent", slice(None)), ("of the last two", slice(-2, None))):
        rows.append([name, *(_slope(along[kept], column[kept]) for column in columns)])
    first = sizes[0]
    fixed = [f"{getattr(first, other):,} {other}" for other in ("sites", "trees", "features") if other != axis]
    fixed += ["500 rows a site"] if axis == "sites" else [] if axis == "rows" else [f"{first.rows:,} rows"]
    heading = [axis, *(f"{step}, s" for step in steps), "all, s", "peak MiB", "sent, kB"]
    return f"**{axis.capitalize()}** ({', '.join(fixed)}):\n\n{table(heading, rows)}"


def _slope(sizes: Sequence[float], values: Sequence[float]) -> str:
    return f"{exponent(sizes, values):.2f}" if min(values) > 0 else ""


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--axis", choices=AXES, nargs="+", help="only these")


if __name__ == "__main__":
    command("growth", __doc__, measure, _more)
