"""Many federations side by side, one processor each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Self, TypeVar

import sklearn
from threadpoolctl import threadpool_limits

Job = TypeVar("Job")
Result = TypeVar("Result")


class Pool:
    """Processes that tell how far they are."""

    def __init__(self, workers: int) -> None:
        self._processes = ProcessPoolExecutor(workers, initializer=_alone)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.shutdown(cancel_futures=True)

    def each(self, name: str, run: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Results in the order of the jobs."""
        for done, result in enumerate(self._processes.map(run, jobs), start=1):
            print(f"\r{name}: {done} of {len(jobs)}", end="\n" * (done == len(jobs)), file=sys.stderr, flush=True)
            yield result


def _alone() -> None:
    """One thread a process; and small trees take longer to check than to grow."""
    threadpool_limits(1)
    sklearn.set_config(assume_finite=True, skip_parameter_validation=True)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """The option that goes with it."""
    parser.add_argument("--workers", type=int, default=2, help="processes")
