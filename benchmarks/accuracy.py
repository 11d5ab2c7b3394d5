"""Does federating help, and whom? The four heart hospitals by cross-validation, and the twelve published environments.

Run `python -m benchmarks.accuracy --data DIR`; with --write the tables replace those in README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.accuracy_data import ENVIRONMENTS
from benchmarks.accuracy_environments import environment_seed, environments_report
from benchmarks.accuracy_heart import FOLDS, heart_fold, heart_report
from benchmarks.harness import README, machine, write_block

BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    options = _options(arguments)
    trees = 20 if options.quick else 100
    repeats, seeds = (2, 2) if options.quick else (options.repeats, options.seeds)
    raw: dict[str, Any] = {"machine": machine()}
    text = [raw["machine"]]
    with ProcessPoolExecutor(options.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        if options.part in ("heart", "all"):
            run = partial(heart_fold, options.data, trees)
            done = _watched("heart", pool.map(run, range(repeats * FOLDS)), repeats * FOLDS)
            raw["heart"], tables = heart_report(options.data, done, repeats)
            text += tables
        if options.part in ("environments", "all"):
            jobs = [(name, seed) for seed in range(seeds) for name in ENVIRONMENTS]
            run_one = partial(environment_seed, options.data, trees)
            raw["environments"], tables = environments_report(
                dict(zip(jobs, _watched("environments", pool.map(run_one, jobs), len(jobs)), strict=True)), seeds
            )
            text += tables
    printed = "\n\n".join(text)
    print(printed)
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    if options.write:
        write_block(README, BEGIN, END, printed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with heart_*.csv, pima.csv and so on")
    parser.add_argument("--part", choices=("heart", "environments", "all"), default="all")
    parser.add_argument("--repeats", type=int, default=10, help="of the cross-validation (at least 2)")
    parser.add_argument("--seeds", type=int, default=20, help="deals of every environment (at least 2)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    parser.add_argument("--quick", action="store_true", help="2 repeats, 2 seeds, 20 trees: does it run?")
    parser.add_argument("--write", action="store_true", help="replace the tables in README.md")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.part != "all"):
        parser.error("--write is for the whole run")
    return options


def _watched(name: str, results: Iterator[Any], total: int) -> Iterator[Any]:
    for done, result in enumerate(results, start=1):
        print(f"\r{name}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
        yield result


if __name__ == "__main__":
    main()
