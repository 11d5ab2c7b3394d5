"""Does federating help, and whom? The four heart hospitals by cross-validation, and the twelve published environments.

Run `python -m benchmarks.accuracy --data DIR`; with --write the tables replace those in README.md and the pictures
those in docs/. Made-up hospitals, for which no data are needed, are in `benchmarks.shifts`.
"""

from __future__ import annotations

import argparse
from functools import partial

from benchmarks.accuracy_data import ENVIRONMENTS
from benchmarks.accuracy_environments import (
    Deals,
    draw_environments,
    environment_seed,
    environments_figures,
    environments_report,
)
from benchmarks.accuracy_heart import (
    ALL_ABSENT_MODELS,
    FOLDS,
    Heart,
    absent_fold,
    absent_report,
    draw_heart,
    heart_figures,
    heart_fold,
    heart_report,
)
from benchmarks.accuracy_run import Pool, add_workers
from benchmarks.harness import CannotRun, Measured, command


def measure(asked: argparse.Namespace) -> Measured:
    """Both parts, or why not."""
    if asked.write and (asked.data is None or asked.part != "all"):
        raise SystemExit("--write is for the whole run, with --data")
    if asked.data is None:
        raise CannotRun("the heart hospitals and the environments are public data sets: --data DIR says where they are")
    with Pool(asked.workers) as pool:
        parts = [run(asked, pool) for name, run in PARTS.items() if asked.part in (name, "all")]
    return Measured([figure for part in parts for figure in part.figures], "\n\n".join(part.told for part in parts))


def environments(asked: argparse.Namespace, pool: Pool) -> Measured:
    """The twelve, dealt out anew with every seed."""
    seeds = 2 if asked.quick else asked.seeds
    jobs = [(name, seed) for seed in range(seeds) for name in ENVIRONMENTS]
    done = pool.each("environments", partial(environment_seed, asked.data, _trees(asked)), jobs)
    deals = Deals(dict(zip(jobs, done, strict=True)), seeds)
    if asked.write:
        draw_environments(deals)
    return Measured(environments_figures(deals), "\n\n".join(environments_report(deals)))


def hospitals(asked: argparse.Namespace, pool: Pool) -> Measured:
    """The four, in turn."""
    repeats = 2 if asked.quick else asked.repeats
    done = pool.each("heart", partial(heart_fold, asked.data, _trees(asked)), range(repeats * FOLDS))
    heart = Heart.of(asked.data, done, repeats)
    if asked.write:
        draw_heart(heart)
    return Measured(heart_figures(heart), "\n\n".join(heart_report(heart)))


def absent(asked: argparse.Namespace, pool: Pool) -> Measured:
    """The four again, each without the columns that it hardly knows."""
    repeats = 2 if asked.quick else asked.repeats
    done = pool.each("absent", partial(absent_fold, asked.data, _trees(asked)), range(repeats * FOLDS))
    heart = Heart.of(asked.data, done, repeats, ALL_ABSENT_MODELS)
    return Measured(heart_figures(heart, "heart, absent columns"), "\n\n".join(absent_report(heart)))


PARTS = {"heart": hospitals, "absent": absent, "environments": environments}


def _trees(asked: argparse.Namespace) -> int:
    return 10 if asked.quick else 100


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--repeats", type=int, default=10, help="of the cross-validation (at least 2)")
    parser.add_argument("--seeds", type=int, default=20, help="deals of every environment (at least 2)")
    add_workers(parser)


if __name__ == "__main__":
    command("accuracy", __doc__, measure, more=_options)
