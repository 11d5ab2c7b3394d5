"""Is the choice at home fair? Trials of the question about the label, and of the lead of the local forest.

python -m benchmarks.guard                   # all parts; needs no data
python -m benchmarks.guard --part question
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.accuracy_models import WATCHED, Watched
from benchmarks.accuracy_run import Pool, add_workers
from benchmarks.accuracy_tables import with_width
from benchmarks.federations import study_of
from benchmarks.harness import Figure, Measured, command, table
from benchmarks.shifts_data import TEST_ROWS, Hospital, cohorts_of
from benchmarks.shifts_data import study_of as federation_study
from spinney.choice import metrics
from spinney.choice.intervals import delong
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
from spinney.trial.simulate import simulate

SITES, TREES, FEATURES = 4, 25, 6
SIGNALS = {"nothing to learn": 0.0, "clear": 0.8}  # log odds per standard deviation
SIZES = (120, 300)
FOREST = 40  # trees a site, so that many federations can be run
SIZES_TOGETHER = (100, 160, 300, 1000)
CLASSES = (0, 200, 1000, 1_000_000)
BEYOND = 1.96


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
        floor, rounding = study.privacy.smallest_leaf, rounding_of(study, one)
        start = 1000 * seed + place
        grown = grow(one.X, one.y, one.patients, study.forest, start, rounding=rounding, floor=floor)
        forests.append(
            export_forest(grown.trees, grown.drawn, one.X, one.y, one.patients, floor=floor, rounding=rounding)
        )
        training.append(one)
    walker, owner = Walker(join_forests(forests), FEATURES), np.repeat(np.arange(SITES), TREES)
    told = [correlation(walker, one, np.flatnonzero(owner != place), YES) for place, one in enumerate(training)]
    return [one.question(SITES) is not None for one in told]


WAYS = (
    {"rows": SIZES_TOGETHER},
    {"rows": SIZES_TOGETHER, "other": 0.5},
    {"rows": SIZES_TOGETHER, "moved": 1.0, "positive": None},
    {"rows": SIZES_TOGETHER, "positive": 0.15},
)


def bias(asked: argparse.Namespace, pool: Pool) -> Measured:
    """By how much the lead of the local forest is mistaken at home, and how many sites lose by what they choose."""
    runs, figures, told = (2 if asked.quick else asked.runs), [], ["### The lead of the local forest"]
    told.append(
        f"Its lead over the federated forest in AUROC x 100, as estimated at home and on {TEST_ROWS:,} test patients, "
        f"{FOREST} trees a site; ± is 95 % over site-runs. A site loses beyond noise if what it chose is below its "
        "local forest by more than 1.96 paired standard errors (2.5 % would by chance if nothing differed)."
    )
    lines = []
    for judges, words in ((0, "own trees alone"), (None, "with trees that only judge")):
        done = [one for runs in pool.each(words, partial(leads_of, judges), range(runs)) for one in runs]
        for low, high in pairwise(CLASSES):
            here = np.array([one[1:] for one in done if low <= one[0] < high])
            estimated, true, lost, better, chose_local = here.T
            off = 100 * (estimated - true)
            figures.append(Figure(f"guard/{words}/from {low:,} rows/bias", "points", tuple(off), "neither"))
            size = f"{low:,} to {high:,}" if high < CLASSES[-1] else f"{low:,} and more"
            cells = [with_width(100 * estimated, "+.2f"), with_width(100 * true, "+.2f"), with_width(off, "+.2f")]
            shares = [f"{values.mean():.1%}" for values in (chose_local, lost, better)]
            lines.append([words, size, f"{len(here)}", *cells, *shares])
    heading = ("judged by", "rows", "site-runs", "estimated", "true", "bias", "chose local", "lost", "gained")
    return Measured(figures, "\n\n".join([*told, table(heading, lines)]))


def leads_of(judges: int | None, seed: int) -> list[tuple[float, ...]]:
    """Per site its rows, the estimated and the true lead, and whether its choice lost, gained, and was local."""
    way = dict(WAYS[seed % len(WAYS)])
    federation = tuple(Hospital(**{**way, "rows": rows}) for rows in way.pop("rows"))  # type: ignore[arg-type]
    study = federation_study(federation, FOREST, seed).with_settings(choice={"judges": judges})
    found = []
    for outcome in simulate(study, cohorts_of(federation, study), algorithm=WATCHED).outcomes.values():
        assert isinstance(outcome, Watched)
        chooser, name = outcome.chooser, outcome.decision.name
        votes, y = outcome.test_votes(), chooser.cohort.rows(Part.TEST).y
        estimated, _ = chooser.judge.lead(chooser.judged_rows, chooser.judged["local"], chooser.judged["bofrf"])
        local, federated, _ = delong(y, votes["local"], votes["bofrf"])
        _, _, error = delong(y, votes["local"], votes[name])
        gain = metrics.auroc(y, votes[name]) - local
        verdict = (gain < -BEYOND * error, gain > BEYOND * error, name == "local")
        found.append((len(chooser.cohort.rows(Part.TRAINING)), estimated, local - federated, *map(float, verdict)))
    return found


PARTS = {"question": question, "bias": bias}


def measure(asked: argparse.Namespace) -> Measured:
    """All parts, or one."""
    with Pool(asked.workers) as pool:
        found = [run(asked, pool) for name, run in PARTS.items() if asked.part in (name, "all")]
    return Measured([figure for one in found for figure in one.figures], "\n\n".join(one.told for one in found))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--runs", type=int, default=300, help="federations of four sites whose leads are compared")
    parser.add_argument("--trials", type=int, default=1000, help="sites of one population in every setting")
    add_workers(parser)


if __name__ == "__main__":
    command("guard", __doc__, measure, more=_options)
