"""The four heart hospitals, by repeated cross-validation: differences from the local forest with two kinds of interval.

Over patients, a bootstrap: what other patients of the same hospital might show. Over repeats, Student's: the noise of
splitting and growing alone, because all repeats share the same patients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy_data import heart_study, heart_tables
from benchmarks.accuracy_models import LOCAL, Voted, forests
from benchmarks.accuracy_tables import counted, half_width
from benchmarks.harness import table
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

FOLDS = 5
DRAWS = 2000
HEART_MODELS = ("FedRF", "BOFRF as published", "our weighting", "chosen", "pooled")
BRIER_MODELS = (LOCAL, "local, calibrated", "chosen", "chosen, calibrated")
ALL_HEART_MODELS = tuple(dict.fromkeys((*BRIER_MODELS, *HEART_MODELS)))


def heart_fold(data: Path, trees: int, job: int) -> HeartFold:
    """One fold of one repeat: each hospital's test rows are its fold."""
    repeat, fold = divmod(job, FOLDS)
    study = heart_study().with_settings(forest={"trees": trees}, split={"seed": job})
    cohorts, rows = {}, {}
    for site, rows_of in heart_tables(data).items():
        whole = cohort_from_frame(rows_of, study)
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
    scored = [[one, *_levels(brier[one]), _gap(brier[one], BRIER_MODELS[-1]), counted(choices[one])] for one in size]
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
