"""The four heart hospitals, by repeated cross-validation: differences from the local forest with two kinds of interval.

Over patients, a bootstrap: what other patients of the same hospital might show. Over repeats, Student's: the noise of
splitting and growing alone, because all repeats share the same patients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy_data import heart_study, heart_tables
from benchmarks.accuracy_models import BETTER, CALIBRATED, LINEAR, LOCAL, Voted, forests
from benchmarks.accuracy_tables import counted, half_width
from benchmarks.harness import Figure, table
from benchmarks.pictures import Panel, save
from spinney.choice import metrics
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.parts import Part, folds
from spinney.study.study import Study

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Folds = NDArray[np.int64]
Votes = Mapping[str, Mapping[str, Floats]]  # site -> model -> repeats x rows
Figures = dict[str, dict[str, Floats]]  # site -> model -> repeats x (1 + bootstraps)
FoldMetric = Callable[[NDArray[np.bool_], Floats, Floats, Folds], Floats]
HeartFold = dict[str, tuple[NDArray[np.int64], Voted]]  # site -> its rows in this fold, and how they were judged

FOLDS = 5
DRAWS = 2000
HEART_MODELS = ("FedRF", "BOFRF as published", "our weighting", "chosen", "pooled", *LINEAR)
BRIER_MODELS = (*HEART_MODELS, *CALIBRATED)
DRAWN = {name: name for name in ("chosen", "BOFRF as published", "pooled")}
ALL_HEART_MODELS = (LOCAL, *BRIER_MODELS)
ABSTAINING = "chosen, trees abstain"
ABSENT_MODELS = ("FedRF", "BOFRF as published", ABSTAINING, "our weighting", "chosen", "pooled")
ALL_ABSENT_MODELS = (*ALL_HEART_MODELS, ABSTAINING)


def heart_fold(data: Path, trees: int, job: int) -> HeartFold:
    """One fold of one repeat: each hospital's test rows are its fold."""
    study, cohorts, rows = _fold(heart_tables(data), trees, job)
    return {site: (rows[site], voted) for site, voted in forests(study, cohorts).items()}


def absent_fold(data: Path, trees: int, job: int) -> HeartFold:
    """The same where nearly empty columns are absent; what is chosen where trees abstain stands beside it."""
    study, cohorts, rows = _fold(heart_tables(data, empty_columns=False), trees, job)
    voted = forests(study, cohorts)
    abstaining = forests(study.with_settings(forest={"absent": "abstain"}), cohorts)
    return {
        site: (rows[site], replace(one, votes={**one.votes, ABSTAINING: abstaining[site].votes["chosen"]}))
        for site, one in voted.items()
    }


def _fold(
    tables: Mapping[str, pd.DataFrame], trees: int, job: int
) -> tuple[Study, dict[str, Cohort], dict[str, NDArray[np.int64]]]:
    repeat, fold = divmod(job, FOLDS)
    study = heart_study().with_settings(forest={"trees": trees}, split={"seed": job})
    cohorts, rows = {}, {}
    for site, rows_of in tables.items():
        whole = cohort_from_frame(rows_of, study)
        held_out = folds(whole.y, whole.patients, FOLDS, repeat) == fold
        part = np.where(held_out, Part.TEST, Part.TRAINING).astype(np.int8)
        cohorts[site] = Cohort(whole.columns, whole.present, whole.X, whole.y, whole.patients, part)
        rows[site] = np.flatnonzero(held_out)
    return study, cohorts, rows


@dataclass(frozen=True)
class Heart:
    """All figures of all repeats, with bootstraps of patients."""

    size: Mapping[str, str]
    auroc: Figures
    within_folds: Figures
    auprc: Figures
    brier: Figures
    choices: Mapping[str, Counter[str]]
    repeats: int

    @classmethod
    def of(cls, data: Path, done: Iterable[HeartFold], repeats: int, models: Sequence[str] = ALL_HEART_MODELS) -> Heart:
        """Pool the folds of every repeat."""
        truth = {site: cohort_from_frame(rows, heart_study()).y for site, rows in heart_tables(data).items()}
        votes, fold, choices = _collected(done, truth, repeats, models)
        one_fold = {site: np.zeros_like(each) for site, each in fold.items()}
        size = {site: f"{len(y)} ({y.sum()})" for site, y in truth.items()} | {"mean": ""}
        return cls(
            size,
            resampled(fold_auroc, truth, votes, one_fold),
            resampled(fold_auroc, truth, votes, fold),
            resampled(_regardless_of_folds(metrics.weighted_auprc), truth, votes, one_fold),
            resampled(_regardless_of_folds(metrics.weighted_brier), truth, votes, one_fold),
            choices,
            repeats,
        )


def heart_report(heart: Heart) -> list[str]:
    """Differences from the local forest, their intervals, Brier scores and choices."""
    return [
        f"### Four heart hospitals\n\n{heart.repeats} repeats of {FOLDS}-fold cross-validation. **AUROC of the "
        "local forest and differences from it**, votes of the folds pooled. In brackets 95 % over patients; ± 95 % "
        "over repeats.",
        _differences(heart, heart.auroc, HEART_MODELS),
        "The same, counting only pairs of patients of the same fold, who were judged by the same model:",
        _differences(heart, heart.within_folds, HEART_MODELS),
        "**AUPRC**, votes of the folds pooled:",
        _differences(heart, heart.auprc, HEART_MODELS),
        "**Brier score** (less is better) and choices in all folds:",
        _differences(heart, heart.brier, BRIER_MODELS, heart.choices),
    ]


def absent_report(heart: Heart) -> list[str]:
    """Differences from the local forest where a hospital lacks columns."""
    return [
        f"### Four heart hospitals, nearly empty columns absent\n\n{heart.repeats} repeats of {FOLDS}-fold "
        "cross-validation, columns of which a hospital knows less than a tenth left out there. **AUROC of the local "
        "forest and differences from it**, as above, and choices:",
        _differences(heart, heart.auroc, ABSENT_MODELS, heart.choices),
    ]


def heart_figures(heart: Heart, part: str = "heart") -> list[Figure]:
    """Every repeat's figure on all patients."""
    by_metric = {"AUROC": heart.auroc, "AUPRC": heart.auprc, "Brier score": heart.brier}
    return [
        Figure(f"{part} {site}/{model}/{metric}", metric, tuple(values[:, 0].tolist()), BETTER[metric])
        for metric, figures in by_metric.items()
        for site, of in figures.items()
        for model, values in of.items()
    ]


def draw_heart(heart: Heart) -> None:
    """Differences from the local forest, with what other patients might show."""
    panels = [
        Panel(title, [*of], {name: [_span(one, model) for one in of.values()] for name, model in models.items()})
        for title, of, models in (
            ("AUROC (more is better)", heart.auroc, DRAWN),
            ("Brier score, chosen calibrated (less is better)", heart.brier, {**DRAWN, "chosen": "chosen, calibrated"}),
        )
    ]
    save(
        "hospitals",
        "Four heart hospitals: differences from the local forest",
        "AUROC and Brier score of each hospital and their mean; the line at 0 is the local forest. Bars are 95 % over "
        "patients. benchmarks/README.md has the figures.",
        panels,
        joined=False,
        one_scale=False,
        wide=1.3,
    )


def _collected(
    done: Iterable[HeartFold], truth: Mapping[str, Labels], repeats: int, models: Sequence[str]
) -> tuple[Votes, dict[str, Folds], dict[str, Counter[str]]]:
    """Votes and folds of every patient in every repeat, and what was chosen how often."""
    votes = {site: {model: np.empty((repeats, len(y))) for model in models} for site, y in truth.items()}
    fold = {site: np.empty((repeats, len(y)), dtype=np.int64) for site, y in truth.items()}
    choices = {site: Counter[str]() for site in truth}
    for job, sites in enumerate(done):
        for site, (rows, voted) in sites.items():
            choices[site][voted.choice] += 1
            fold[site][job // FOLDS, rows] = job % FOLDS
            for model in models:
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
    models = next(iter(figures.values()))
    figures["mean"] = {model: np.mean([of[model] for of in figures.values()], axis=0) for model in models}
    return figures


def fold_auroc(y: NDArray[np.bool_], votes: Floats, weights: Floats, fold: Folds) -> Floats:
    """Share of pairs of a positive and a negative patient of the same fold that are in the right order."""
    right, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for number in np.unique(fold):
        here = fold == number
        count = weights[:, here & y].sum(axis=1) * weights[:, here & ~y].sum(axis=1)
        right += count * np.nan_to_num(metrics.weighted_auroc(y[here], votes[here], weights[:, here]))
        pairs += count
    return right / pairs


def _regardless_of_folds(metric: metrics.Metric) -> FoldMetric:
    return lambda y, votes, weights, _fold: metric(y, votes, weights)


def _patient_weights(y: Labels, seed: int) -> Floats:
    """First everybody once, then bootstraps; the classes are drawn apart, or Switzerland's negatives would run out."""
    rng = np.random.default_rng([seed, 0xB007])
    weights = np.ones((DRAWS + 1, len(y)))
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        weights[1:, rows] = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), DRAWS)
    return weights


def _differences(
    heart: Heart, figures: Figures, models: Sequence[str], choices: Mapping[str, Counter[str]] | None = None
) -> str:
    lines = []
    for site, patients in heart.size.items():
        of = figures[site]
        told = [counted(choices[site])] if choices else []
        lines.append([site, patients, f"{of[LOCAL][:, 0].mean():.3f}", *(_gap(of, model) for model in models), *told])
    return table(("site", "patients (positive)", LOCAL, *models, *(["choices"] if choices else [])), lines)


def _gap(figures: Mapping[str, Floats], model: str) -> str:
    middle, low, high = _span(figures, model)
    return f"{middle:+.3f} ({low:+.3f} to {high:+.3f}; ±{half_width((figures[model] - figures[LOCAL])[:, 0]):.3f})"


def _span(figures: Mapping[str, Floats], model: str) -> tuple[float, float, float]:
    """A model's difference from the local forest, and 95 % over patients."""
    gap = figures[model] - figures[LOCAL]
    low, high = np.quantile(gap[:, 1:].mean(axis=0), (0.025, 0.975))
    return float(gap[:, 0].mean()), float(low), float(high)
