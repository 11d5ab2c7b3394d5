"""The demo's world with other seeds: is what `make demo` shows a lucky draw? Every seed is one night of one world.

    python -m benchmarks.demo --write            # the table of docs/demo.md
    python -m benchmarks.demo --quick            # two seeds

The first seed is the demo's own. A night has one split of the patients, so its gain is as sure as its test patients are
many; the last column is over the nights of all seeds.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import Figure, Measured, command, table
from spinney.choice.verdict import MARKS, verdict_of
from spinney.demo.history import make_history
from spinney.demo.site import world_study
from spinney.demo.table import finished_table
from spinney.flows.demo.setting import World
from spinney.library.tables import cohort_of
from spinney.trial.simulate import simulate

PAGE = Path(__file__).parent.parent / "docs" / "demo.md"
SEEDS, QUICK_SEEDS, QUICK_PATIENTS = 20, 2, 900


@dataclass(frozen=True)
class Night:
    """What came of one hospital's night."""

    rows: int
    gain: float
    word: str


def night_of(world: World) -> Mapping[str, Night]:
    """One night of one world, in one process."""
    study = world_study()
    study = study.with_settings(split={"seed": world.seed})
    histories = {hospital.name: make_history(hospital, world.seed) for hospital in world.hospitals}
    cohorts = {site: cohort_of(site, finished_table(history, study), study) for site, history in histories.items()}
    found = {}
    for site, outcome in simulate(study, cohorts, workers=2).outcomes.items():
        gain = outcome.gain.get("auroc")
        verdict = verdict_of(gain, outcome.patients)
        found[site] = Night(outcome.rows, float("nan") if gain is None else gain.value, verdict.word)
    return found


def measure(asked: argparse.Namespace) -> Measured:
    """All seeds, from the demo's own on."""
    first = World(Path())
    if asked.quick:
        first = replace(first, patients=QUICK_PATIENTS)
    seeds = range(first.seed, first.seed + (QUICK_SEEDS if asked.quick else SEEDS))
    nights: dict[str, list[Night]] = {}
    for seed in seeds:
        for site, night in night_of(replace(first, seed=seed)).items():
            nights.setdefault(site, []).append(night)
    rows, figures = [], []
    for site, found in nights.items():
        gains = sorted(one.gain for one in found if one.gain == one.gain)
        figures.append(Figure(f"demo/{site}/gain", "AUROC", tuple(gains), "more"))
        words = Counter(one.word for one in found)
        told = [f"{statistics.mean(gains):+.3f}", f"{gains[0]:+.3f} to {gains[-1]:+.3f}"] if gains else ["", ""]
        stays = f"{statistics.median(one.rows for one in found):,.0f}"
        rows.append([site, stays, *told, *(str(words[word]) for word in MARKS)])
    heading = ["hospital", "stays (median)", "gain, mean", "least to most", *MARKS]
    words = f"Seeds {seeds[0]} to {seeds[-1]}, one night each; gains of the nights that had enough test patients."
    return Measured(figures, f"{words}\n\n{table(heading, rows)}")


if __name__ == "__main__":
    command("demo", __doc__, measure, page=PAGE)
