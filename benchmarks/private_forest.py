"""What differential privacy costs: dp-forest at epsilon 1, 3 and 10, beside the local forest and BOFRF.

    python -m benchmarks.private_forest --data DIR   # with the heart hospitals, pima.csv and saheart.csv

Every seed is another split and other noise; all federations are measured on the same test patients, and a figure is the
mean AUROC over the sites. `no noise` is the same forest from the plain counts: what random trees cost, noise aside.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from benchmarks.accuracy_data import ENVIRONMENTS, dealt, environment_study, heart_study, heart_tables
from benchmarks.federations import made_up
from benchmarks.harness import Figure, Measured, command, table
from spinney.algorithms.dp_forest import blind_forest, common_forest, leaf_counts, with_shares
from spinney.choice.metrics import Figure as Value
from spinney.choice.metrics import auroc
from spinney.forest.traverse import Walker
from spinney.forest.tree import Forest
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.trial.simulate import simulate

EPSILONS = (1.0, 3.0, 10.0)
WAYS = ("local", "BOFRF", "no noise", *(f"epsilon {epsilon:g}" for epsilon in reversed(EPSILONS)))
SPLIT = {"validation": 0, "newest": 0}
Tables = Mapping[str, pd.DataFrame]


def federations(asked: argparse.Namespace) -> Iterator[tuple[str, Study, Mapping[str, Cohort]]]:
    """Name, study and sites of everything that is here, once per seed."""
    for seed in range(1 if asked.quick else asked.seeds):
        if asked.data:
            yield "heart hospitals", *_divided(heart_study(), heart_tables(asked.data), seed)
            for key in ("E6", "E12"):
                one = ENVIRONMENTS[key]
                frame = pd.read_csv(asked.data / f"{one.data}.csv")
                study = environment_study(one, frame)
                tables = dealt(frame, study.label.name, one.sites, seed)
                yield f"{one.data}, {len(one.sites)} sites", *_divided(study, tables, seed)
        for rows in (500,) if asked.quick else (500, 2000):
            study, cohorts = made_up(4, 100, rows)
            yield f"made up, 4 sites of {rows:,}", _split(study, seed), cohorts


def _split(study: Study, seed: int) -> Study:
    return study.with_settings(split={**SPLIT, "seed": seed}, choice={"bootstrap": 100, "repeats": 1})


def _divided(study: Study, tables: Tables, seed: int) -> tuple[Study, dict[str, Cohort]]:
    study = _split(study, seed)
    return study, {name: cohort_from_frame(frame, study) for name, frame in tables.items()}


def reached(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, float]:
    """Mean AUROC of every way on patients that trained nothing, over the sites that have enough of them."""
    outcomes = simulate(study, cohorts, workers=2).outcomes
    sites = {
        site: cohorts[site] for site, one in outcomes.items() if one.auroc["local"]
    }  # with patients enough to measure on
    found = {
        way: float(np.mean([_known(outcomes[site].auroc[way.lower()]) for site in sites])) for way in ("local", "BOFRF")
    }
    for epsilon in EPSILONS:
        told = {
            **study.model_dump(mode="json"),
            "algorithm": {"name": "dp-forest", "epsilon": epsilon},
            "forest": {"trees": 1},  # the local one, which was measured above
        }
        private = Study.model_validate(told)
        release = simulate(private, cohorts).release
        assert release is not None
        forest = common_forest(private, 1, release.order_of(min(cohorts)))  # type: ignore[arg-type]
        found[f"epsilon {epsilon:g}"] = _mean(forest, sites)
    trees = blind_forest(private, 1)
    plain = np.sum([leaf_counts(trees, one.rows(Part.TRAINING)) for one in cohorts.values()], axis=0)
    return {**found, "no noise": _mean(with_shares(trees, plain, 0.0), sites)}


def _known(figure: Value | None) -> float:
    return float("nan") if figure is None else figure.value


def _mean(forest: Forest, cohorts: Mapping[str, Cohort]) -> float:
    tests = [cohort.rows(Part.TEST) for cohort in cohorts.values()]
    votes = [Walker(forest, len(test.columns)).votes(test.X).mean(axis=1) for test in tests]
    return float(np.mean([auroc(test.y, vote) for test, vote in zip(tests, votes, strict=True)]))


def measure(asked: argparse.Namespace) -> Measured:
    """Every federation, every way, every seed."""
    runs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, study, cohorts in federations(asked):
        for way, value in reached(study, cohorts).items():
            runs[name][way].append(value)
    rows = [
        (name, *(f"{np.mean(found[way]):.3f} ({min(found[way]):.3f} to {max(found[way]):.3f})" for way in WAYS))
        for name, found in runs.items()
    ]
    figures = [
        Figure(f"{name}/{way}/AUROC", "", tuple(values), "more")
        for name, found in runs.items()
        for way, values in found.items()
    ]
    return Measured(figures, table(("federation", *WAYS), rows))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=3, help="splits and noises, each another")


if __name__ == "__main__":
    command("private_forest", __doc__, measure, _options)
