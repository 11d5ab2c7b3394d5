"""Is the choice at home fair? Trials of the question about the label.

python -m benchmarks.guard                   # all parts; needs no data
python -m benchmarks.guard --part question
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.accuracy_run import Pool, add_workers
from benchmarks.federations import study_of
from benchmarks.harness import Figure, Measured, command, table
from spinney.choice.question import correlation
from spinney.federation.forest_site import rounding_of
from spinney.forest.export import export_forest
from spinney.forest.grow import grow
from spinney.forest.score import YES
from spinney.forest.traverse import Walker
from spinney.forest.tree import join_forests
from spinney.rows.cohort import Cohort
from spinney.rows.encode import columns_of
from spinney.rows.parts import Part, parts_by_seed

SITES, TREES, FEATURES = 4, 25, 6
SIGNALS = {"nothing to learn": 0.0, "a little": 0.3, "clear": 0.8}  # log odds per standard deviation
SIZES = (120, 300)


def question(asked: argparse.Namespace, pool: Pool) -> Measured:
    """How often sites of one population are asked, and how often a site with reversed labels is found."""
    trials = 10 if asked.quick else asked.trials
    figures, lines = [], []
    for rows in SIZES:
        for name, signal in SIGNALS.items():
            alike = [*pool.each(f"{rows} rows, {name}", partial(asked_at, rows, signal, False), range(trials // SITES))]
            found = [*pool.each(f"{rows} rows, reversed", partial(asked_at, rows, signal, True), range(trials // 10))]
            sites = [one for federation in alike for one in federation]
            figures.append(Figure(f"question/{rows} rows, {name}", "asked", tuple(map(float, sites))))
            hits = sum(federation[0] for federation in found)
            lines.append([f"{rows}", name, f"{sum(sites)} of {len(sites)}", f"{hits} of {len(found)}"])
    told = "### The question about the label\n\nFour sites of one population, and the same with one whose labels are "
    told += "reversed:\n\n" + table(("rows a site", "signal", "sites asked", "reversed labels found"), lines)
    return Measured(figures, told)


def asked_at(rows: int, signal: float, reverse: bool, seed: int) -> Sequence[bool]:
    """Whether each of some sites is asked; with `reverse` the first one's labels are the other way round."""
    study = study_of([f"x{place}" for place in range(FEATURES)], TREES)
    training, forests = [], []
    for place in range(SITES):
        rng = np.random.default_rng([seed, place, rows])
        X = rng.normal(size=(rows, FEATURES))
        odds = signal * (X @ np.array([1, 1, 0.5, 0.5, 0, 0])) - 0.5
        y = (rng.random(rows) < 1 / (1 + np.exp(-odds))) != (reverse and place == 0)
        here, matrix = np.ones(FEATURES, dtype=bool), ((np.clip(X, -5, 5) + 5) / 10).astype(np.float32)
        people, labels = np.arange(rows), y.astype(np.int8)
        part = parts_by_seed(labels, study.split)
        one = Cohort(columns_of(study.features), here, matrix, labels, people, part).rows(Part.TRAINING)
        one = replace(one, patients=np.arange(len(one)))
        grown = grow(one.X, one.y, one.patients, study.forest, 1000 * seed + place)
        floor, rounding = study.privacy.smallest_leaf, rounding_of(study, one)
        forests.append(
            export_forest(grown.trees, grown.drawn, one.X, one.y, one.patients, floor=floor, rounding=rounding)
        )
        training.append(one)
    walker, owner = Walker(join_forests(forests), FEATURES), np.repeat(np.arange(SITES), TREES)
    told = [correlation(walker, one, np.flatnonzero(owner != place), YES) for place, one in enumerate(training)]
    return [one.question(SITES) is not None for one in told]


PARTS = {"question": question}


def measure(asked: argparse.Namespace) -> Measured:
    """All parts, or one."""
    with Pool(asked.workers) as pool:
        found = [run(asked, pool) for name, run in PARTS.items() if asked.part in (name, "all")]
    return Measured([figure for one in found for figure in one.figures], "\n\n".join(one.told for one in found))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--trials", type=int, default=1000, help="sites of one population in every setting")
    add_workers(parser)


if __name__ == "__main__":
    command("guard", __doc__, measure, more=_options)
