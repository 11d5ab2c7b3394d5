"""The same as benchmarks/speed.py at the size of real cohorts: 100,000 x 30 made-up rows, 4 sites x 100 trees.

    python -m benchmarks.speed_large --write

Growing weighs more than starting here.
"""

from __future__ import annotations

import argparse

from benchmarks.harness import Measured, command
from benchmarks.speed import FLOOR, TURNS, UNSCORED, run, systems
from benchmarks.speed_cases import Case

LARGE = Case("100,000 rows", trees=100, rows=100_000, held_out=10_000)
QUICK = Case("4,000 rows", trees=10, rows=4_000, held_out=1_000)


def measure(asked: argparse.Namespace) -> Measured:
    """A quick run leaves out what a quick benchmarks.speed runs anyway."""
    if not asked.quick:
        return run(LARGE, TURNS, systems()).measured(LARGE)
    wanted = [one for one in systems() if one.name in (FLOOR, *UNSCORED.values())]
    return run(QUICK, 1, wanted).measured(QUICK)


if __name__ == "__main__":
    command("speed_large", __doc__, measure)
