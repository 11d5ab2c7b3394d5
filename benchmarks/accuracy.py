"""Does federating help, and whom? The four heart hospitals by cross-validation, and the twelve published environments.

Run `python -m benchmarks.accuracy --data DIR`; with --write the tables replace those in README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from benchmarks.accuracy_data import (
    ENVIRONMENTS,
    PUBLISHED,
    dealt,
    environment_study,
    heart_study,
    heart_tables,
)
from benchmarks.accuracy_models import Voted, boosted, forests
from spinney import metrics
from spinney.cohort import Cohort, cohort_from_frame
from spinney.parts import Part, folds

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Folds = NDArray[np.int64]
Votes = Mapping[str, Mapping[str, Floats]]  # site -> model -> repeats x rows
Figures = dict[str, dict[str, Floats]]  # site -> model -> repeats x (1 + bootstraps)
FoldMetric = Callable[[NDArray[np.bool_], Floats, Floats, Folds], Floats]
HeartFold = dict[str, tuple[NDArray[np.int64], Voted]]  # site -> its rows in this fold, and how they were judged

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"
FOLDS = 5
DRAWS = 2000
LOCAL = "local forest"
HEART_MODELS = ("FedRF", "BOFRF as published", "our weighting", "chosen", "pooled")
BRIER_MODELS = (LOCAL, "local, calibrated", "chosen", "chosen, calibrated")
ALL_HEART_MODELS = tuple(dict.fromkeys((*BRIER_MODELS, *HEART_MODELS)))
ENVIRONMENT_MODELS = (
    "local AdaBoost",
    "BOPPID",
    LOCAL,
    "FedRF",
    "BOFRF as published",
    "personalised",
    "personalised on test rows",
    "chosen",
    "pooled",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    options = _options(arguments)
    trees = 20 if options.quick else 100
    repeats, seeds = (2, 2) if options.quick else (options.repeats, options.seeds)
    raw: dict[str, Any] = {"machine": _machine()}
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


def heart_fold(data: Path, trees: int, job: int) -> HeartFold:
    """One fold of one repeat: each hospital's test rows are its fold."""
    repeat, fold = divmod(job, FOLDS)
    study = heart_study().with_settings(forest={"trees": trees}, split={"seed": job})
    cohorts, rows = {}, {}
    for site, table in heart_tables(data).items():
        whole = cohort_from_frame(table, study)
        held_out = folds(whole.y, whole.patients, FOLDS, repeat) == fold
        part = np.where(held_out, Part.TEST, Part.TRAINING).astype(np.int8)
        cohorts[site] = Cohort(whole.columns, whole.present, whole.X, whole.y, whole.patients, part)
        rows[site] = np.flatnonzero(held_out)
    return {site: (rows[site], voted) for site, voted in forests(study, cohorts).items()}


def heart_report(data: Path, done: Iterable[HeartFold], repeats: int) -> tuple[dict[str, Any], list[str]]:
    """Differences from the local forest, their intervals, Brier scores and choices, as plain data and as tables."""
    truth = {site: cohort_from_frame(rows, heart_study()).y for site, rows in heart_tables(data).items()}
    votes, fold, choices = _collected(done, truth, repeats)
    one_fold = {site: np.zeros_like(each) for site, each in fold.items()}
    pooled = resampled(fold_auroc, truth, votes, one_fold)
    within = resampled(fold_auroc, truth, votes, fold)
    brier = resampled(_brier, truth, votes, one_fold)
    size = {site: f"{len(y)} ({y.sum()})" for site, y in truth.items()} | {"mean": ""}
    heading = ("site", "patients (positive)", LOCAL, *HEART_MODELS)
    scored = [[one, *_levels(brier[one]), _gap(brier[one], BRIER_MODELS[-1]), _counts(choices[one])] for one in size]
    tables = [
        f"### Four heart hospitals\n\n{repeats} repeats of {FOLDS}-fold cross-validation. **AUROC of the local forest "
        "and differences from it**, votes of the folds pooled. In brackets 95 % over patients; ± 95 % over repeats.",
        table(heading, [[site, size[site], *_gaps(pooled[site], HEART_MODELS)] for site in size]),
        "The same, counting only pairs of patients of the same fold, who were judged by the same model:",
        table(heading, [[site, size[site], *_gaps(within[site], HEART_MODELS)] for site in size]),
        "**Brier scores** (less is better) and choices in all folds:",
        table(("site", *BRIER_MODELS, "difference, last from first", "choices"), scored),
    ]
    figures = {"auroc, pooled folds": pooled, "auroc, within folds": within, "brier": brier}
    return {**{name: _by_repeat(of) for name, of in figures.items()}, "choices": choices}, tables


def _collected(
    done: Iterable[HeartFold], truth: Mapping[str, Labels], repeats: int
) -> tuple[Votes, dict[str, Folds], dict[str, Counter[str]]]:
    """Votes and folds of every patient in every repeat, and what was chosen how often."""
    votes = {site: {model: np.empty((repeats, len(y))) for model in ALL_HEART_MODELS} for site, y in truth.items()}
    fold = {site: np.empty((repeats, len(y)), dtype=np.int64) for site, y in truth.items()}
    choices = {site: Counter[str]() for site in truth}
    for job, sites in enumerate(done):
        for site, (rows, voted) in sites.items():
            choices[site][voted.choice] += 1
            fold[site][job // FOLDS, rows] = job % FOLDS
            for model in ALL_HEART_MODELS:
                votes[site][model][job // FOLDS, rows] = voted.votes[model]
    choices["mean"] = sum(choices.values(), Counter())
    return votes, fold, choices


def resampled(metric: FoldMetric, truth: Mapping[str, Labels], votes: Votes, fold: Mapping[str, Folds]) -> Figures:
    """Per site and model a figure for every repeat (first axis); second axis: all patients, then bootstraps of them."""
    figures: Figures = {}
    for number, (site, y) in enumerate(truth.items()):
        weights = _patient_weights(y, number)
        figures[site] = {
            model: np.stack([metric(y == 1, one, weights, at) for one, at in zip(values, fold[site], strict=True)])
            for model, values in votes[site].items()
        }
    figures["mean"] = {model: np.mean([of[model] for of in figures.values()], axis=0) for model in ALL_HEART_MODELS}
    return figures


def _by_repeat(figures: Figures) -> dict[str, dict[str, list[float]]]:
    return {site: {model: list(values[:, 0]) for model, values in of.items()} for site, of in figures.items()}


def fold_auroc(y: NDArray[np.bool_], votes: Floats, weights: Floats, fold: Folds) -> Floats:
    """Share of pairs of a positive and a negative patient of the same fold that are in the right order."""
    right, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for number in np.unique(fold):
        here = fold == number
        count = weights[:, here & y].sum(axis=1) * weights[:, here & ~y].sum(axis=1)
        right += count * np.nan_to_num(metrics.weighted_auroc(y[here], votes[here], weights[:, here]))
        pairs += count
    return right / pairs


def _brier(y: NDArray[np.bool_], votes: Floats, weights: Floats, _fold: Folds) -> Floats:
    return metrics.weighted_brier(y, votes, weights)


def _patient_weights(y: Labels, seed: int) -> Floats:
    """First everybody once, then bootstraps; the classes are drawn apart, or Switzerland's negatives would run out."""
    rng = np.random.default_rng([seed, 0xB007])
    weights = np.ones((DRAWS + 1, len(y)))
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        weights[1:, rows] = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), DRAWS)
    return weights


def _gaps(figures: Mapping[str, Floats], models: Sequence[str]) -> list[str]:
    return [f"{figures[LOCAL][:, 0].mean():.3f}", *(_gap(figures, model) for model in models)]


def _gap(figures: Mapping[str, Floats], model: str) -> str:
    gap = figures[model] - figures[LOCAL]
    low, high = np.quantile(gap[:, 1:].mean(axis=0), (0.025, 0.975))
    return f"{gap[:, 0].mean():+.3f} ({low:+.3f} to {high:+.3f}; ±{half_width(gap[:, 0]):.3f})"


def _levels(figures: Mapping[str, Floats]) -> list[str]:
    return [f"{figures[model][:, 0].mean():.3f}" for model in BRIER_MODELS]


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counter.most_common())


def environment_seed(data: Path, trees: int, job: tuple[str, int]) -> tuple[dict[str, list[float]], list[str]]:
    """AUROC of every model at every site of one random deal, and what the sites chose."""
    name, seed = job
    environment = ENVIRONMENTS[name]
    whole = pd.read_csv(data / f"{environment.data}.csv")
    study = environment_study(environment, whole).with_settings(forest={"trees": trees}, split={"seed": seed})
    deal = dealt(whole, study.label.name, environment.sites, seed)
    cohorts = {site: cohort_from_frame(rows, study) for site, rows in deal.items()}
    voted, others = forests(study, cohorts), boosted(study, cohorts)
    votes = [(one.y, {**one.votes, **others[site]}) for site, one in voted.items()]
    figures = {model: [metrics.auroc(y, by_model[model]) for y, by_model in votes] for model in ENVIRONMENT_MODELS}
    return figures, [one.choice for one in voted.values()]


def environments_report(done: Mapping[tuple[str, int], Any], seeds: int) -> tuple[dict[str, Any], list[str]]:
    """Means over sites beside the published ones, with intervals over deals."""
    by_site = {
        name: {model: np.array([done[name, seed][0][model] for seed in range(seeds)]) for model in ENVIRONMENT_MODELS}
        for name in ENVIRONMENTS
    }  # environment -> model -> seeds x sites
    choices = {name: Counter(one for seed in range(seeds) for one in done[name, seed][1]) for name in ENVIRONMENTS}
    by_site["all"] = {model: np.hstack([of[model] for of in by_site.values()]) for model in ENVIRONMENT_MODELS}
    choices["all"] = sum(choices.values(), Counter())
    means = {name: {model: values.mean(axis=1) for model, values in of.items()} for name, of in by_site.items()}
    sites = [len(one.sites) for one in ENVIRONMENTS.values()]
    published = {name: one.published for name, one in ENVIRONMENTS.items()}
    published["all"] = tuple(np.average([*published.values()], axis=0, weights=sites))
    tables = [
        f"### Twelve environments\n\n**AUROC**, means over sites and {seeds} random deals ± 95 % over deals:",
        table(
            ("environment", *ENVIRONMENT_MODELS),
            [[name, *(_with_width(of[model]) for model in ENVIRONMENT_MODELS)] for name, of in means.items()],
        ),
        "**Published AUROC**, means over sites of one deal chosen by the authors:",
        table(("environment", *PUBLISHED), [[name, *(f"{v:.3f}" for v in of)] for name, of in published.items()]),
        "**Differences from the local forest** (BOPPID: from local AdaBoost), in brackets as published; share of sites "
        "and deals whose AUROC is below that of the local forest, BOFRF as published and chosen; choices:",
        table(
            ("environment", "BOPPID", "FedRF", "BOFRF as published", "chosen", "pooled", "below local", "choices"),
            [
                [name, *_environment_gaps(of, published[name], by_site[name]), _counts(choices[name])]
                for name, of in means.items()
            ],
        ),
    ]
    raw = {
        name: {model: values.tolist() for model, values in of.items()} for name, of in by_site.items() if name != "all"
    }
    return {"auroc": raw, "choices": choices}, tables


def _environment_gaps(
    means: Mapping[str, Floats], published: Sequence[float], by_site: Mapping[str, Floats]
) -> list[str]:
    told = dict(zip(PUBLISHED, published, strict=True))
    cells = []
    for model in ("BOPPID", "FedRF", "BOFRF as published", "chosen", "pooled"):
        base = "local AdaBoost" if model == "BOPPID" else LOCAL
        gap = means[model] - means[base]
        beside = f" ({told[model] - told[base]:+.3f})" if model in told else ""
        cells.append(f"{gap.mean():+.3f} ±{half_width(gap):.3f}{beside}")
    below = [f"{np.mean(by_site[model] < by_site[LOCAL]):.0%}" for model in ("BOFRF as published", "chosen")]
    return [*cells, ", ".join(below)]


def _with_width(values: Floats) -> str:
    return f"{values.mean():.3f} ±{half_width(values):.3f}"


def half_width(values: Floats) -> float:
    """Of Student's 95 % interval of the mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write_block(file: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two markers."""
    before, _, rest = file.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{file.name} has no block {begin} {end}")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _watched(name: str, results: Iterator[Any], total: int) -> Iterator[Any]:
    for done, result in enumerate(results, start=1):
        print(f"\r{name}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
        yield result


def _machine() -> str:
    versions = ", ".join(f"{part} {version(part)}" for part in ("numpy", "scikit-learn", "spinney"))
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"Python {platform.python_version()}, {versions}; {machine}."


if __name__ == "__main__":
    main()
