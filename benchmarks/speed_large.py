"""The same as benchmarks/speed.py at the size of real cohorts: 100,000 x 30 made-up rows, 4 sites x 100 trees.

    python -m benchmarks.speed_large

Once each, because every system grows 400 trees: about ten minutes on two cores.
"""

from __future__ import annotations

import argparse

from benchmarks.harness import Measured, command
from benchmarks.speed import run, systems
from benchmarks.speed_cases import Case

LARGE = Case("100,000 rows", trees=100, rows=100_000, held_out=10_000)
QUICK = Case("4,000 rows", trees=10, rows=4_000, held_out=1_000)


def measure(asked: argparse.Namespace) -> Measured:
    """A quick run leaves out the peers, which benchmarks.speed runs anyway."""
    case = QUICK if asked.quick else LARGE
    wanted = [one for one in systems() if not (asked.quick and one.peer)]
    return run(case, 1, wanted).measured(case)


if __name__ == "__main__":
    command("speed_large", __doc__, measure)
