"""Where does federating stop helping? Made-up hospitals that differ in one known way, more and more of it.

Run `python -m benchmarks.shifts`; with --write the tables replace those in README.md and the pictures those in docs/.
Nothing but this machine is needed: shifts_data.py says how the patients are made.
"""

from __future__ import annotations

import argparse

from benchmarks.accuracy_models import Seen, with_the_others
from benchmarks.accuracy_run import Pool, add_workers
from benchmarks.harness import Measured, command
from benchmarks.shifts_data import SWEEPS, Federation, Sweep, cohorts_of, study_of
from benchmarks.shifts_pictures import draw
from benchmarks.shifts_report import MODELS, Effort, Results, figures, report

MANY, HUGE = 8_000, 32_000  # patients of a federation from which on it has fewer trees and is repeated less often


def measure(asked: argparse.Namespace) -> Measured:
    """All sweeps; a federation that several of them share runs once."""
    usual = Effort(10, 2) if asked.quick else Effort(100, asked.repeats)
    sweeps = [_end(sweep) for sweep in SWEEPS] if asked.quick else SWEEPS
    efforts = {one: _effort(one, usual) for sweep in sweeps for one in sweep.settings.values()}
    jobs = [(one, effort.trees, seed) for one, effort in efforts.items() for seed in range(effort.repeats)]
    jobs.sort(key=lambda job: -_patients(job[0]))  # the long ones first: nobody waits for them in the end
    with Pool(asked.workers) as pool:
        done = dict(zip(jobs, pool.each("shifts", one_federation, jobs), strict=True))
    results: Results = {one: [done[one, of.trees, seed] for seed in range(of.repeats)] for one, of in efforts.items()}
    if asked.write:
        draw(sweeps, results)
    return Measured(figures(sweeps, results), report(sweeps, results, usual, efforts))


def one_federation(job: tuple[Federation, int, int]) -> Seen:
    """Every figure of every model at every site of one repeat, and what the sites chose."""
    federation, trees, seed = job
    study = study_of(federation, trees, seed)
    return Seen.of(with_the_others(study, cohorts_of(federation, study)).values(), MODELS)


def _end(sweep: Sweep) -> Sweep:
    """Of the smallest federations the one that is furthest from the usual."""
    name = min(reversed(sweep.settings), key=lambda name: _patients(sweep.settings[name]))
    return Sweep(sweep.title, {name: sweep.settings[name]}, sweep.odd)


def _patients(federation: Federation) -> int:
    return sum(hospital.rows for hospital in federation)


def _effort(federation: Federation, usual: Effort) -> Effort:
    patients = _patients(federation)
    if patients < MANY:
        return usual
    return Effort(usual.trees // 2, 3 if patients >= HUGE else max(3, usual.repeats // 2))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=8, help="with other training patients (at least 2)")
    add_workers(parser)


if __name__ == "__main__":
    command("shifts", __doc__, measure, more=_options)
