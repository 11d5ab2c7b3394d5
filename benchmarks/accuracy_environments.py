"""The twelve published environments, dealt out at random again and again, beside the published figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy_data import ENVIRONMENTS, PUBLISHED, dealt, environment_study
from benchmarks.accuracy_models import LOCAL, boosted, forests
from benchmarks.accuracy_tables import counted, with_width
from benchmarks.harness import table
from spinney import metrics
from spinney.cohort import cohort_from_frame

Floats = NDArray[np.float64]

MODELS = (
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
COMPARED = ("BOPPID", "FedRF", "BOFRF as published", "chosen", "pooled")
PAIRS = (
    ("chosen", "FedRF"),
    ("chosen", "BOFRF as published"),
    ("chosen", "personalised"),
    ("chosen", "BOPPID"),
    ("chosen", "pooled"),
    ("personalised on test rows", "personalised"),
)
SIZES = (0, 150, 250, 400, 1000)  # patients of a site, from each to below the next


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
    figures = {model: [metrics.auroc(y, by_model[model]) for y, by_model in votes] for model in MODELS}
    return figures, [one.choice for one in voted.values()]


def environments_report(done: Mapping[tuple[str, int], Any], seeds: int) -> tuple[dict[str, Any], list[str]]:
    """Means over sites beside the published ones, with intervals over deals."""
    by_site = {
        name: {model: np.array([done[name, seed][0][model] for seed in range(seeds)]) for model in MODELS}
        for name in ENVIRONMENTS
    }  # environment -> model -> seeds x sites
    choices = {name: Counter(one for seed in range(seeds) for one in done[name, seed][1]) for name in ENVIRONMENTS}
    by_site["all"] = {model: np.hstack([of[model] for of in by_site.values()]) for model in MODELS}
    choices["all"] = sum(choices.values(), Counter())
    means = {name: {model: values.mean(axis=1) for model, values in of.items()} for name, of in by_site.items()}
    sites = [len(one.sites) for one in ENVIRONMENTS.values()]
    published = {name: one.published for name, one in ENVIRONMENTS.items()}
    published["all"] = tuple(np.average([*published.values()], axis=0, weights=sites))
    gaps = [[name, *_gaps(of, published[name], by_site[name]), counted(choices[name])] for name, of in means.items()]
    tables = [
        f"### Twelve environments\n\n**AUROC**, means over sites and {seeds} random deals ± 95 % over deals:",
        table(
            ("environment", *MODELS), [[name, *(with_width(of[one]) for one in MODELS)] for name, of in means.items()]
        ),
        "**Published AUROC**, means over sites of one deal chosen by the authors:",
        table(("environment", *PUBLISHED), [[name, *(f"{v:.3f}" for v in of)] for name, of in published.items()]),
        "**Differences from the local forest** (BOPPID: from local AdaBoost), in brackets as published; share of sites "
        "and deals whose AUROC is below that of the local forest, BOFRF as published and chosen; choices:",
        table(("environment", *COMPARED, "below local", "choices"), gaps),
        "**Paired differences** over all sites and deals:",
        table(("difference", "AUROC"), _paired(by_site["all"])),
    ]
    raw = {
        name: {model: values.tolist() for model, values in of.items()} for name, of in by_site.items() if name != "all"
    }
    return {"auroc": raw, "choices": choices}, tables


def _gaps(means: Mapping[str, Floats], published: Sequence[float], by_site: Mapping[str, Floats]) -> list[str]:
    told = dict(zip(PUBLISHED, published, strict=True))
    cells = []
    for model in COMPARED:
        base = "local AdaBoost" if model == "BOPPID" else LOCAL
        gap = means[model] - means[base]
        beside = f" ({told[model] - told[base]:+.3f})" if model in told else ""
        cells.append(with_width(gap, "+.3f") + beside)
    below = [f"{np.mean(by_site[model] < by_site[LOCAL]):.0%}" for model in ("BOFRF as published", "chosen")]
    return [*cells, ", ".join(below)]


def _paired(by_site: Mapping[str, Floats]) -> list[list[str]]:
    rows = [[f"{one} - {other}", _gap(by_site[one] - by_site[other])] for one, other in PAIRS]
    size = np.array([rows for environment in ENVIRONMENTS.values() for rows, _ in environment.sites])
    gain = by_site["chosen"] - by_site[LOCAL]
    for low, high in pairwise(SIZES):
        here = (low <= size) & (size < high)
        rows.append(
            [
                f"chosen - {LOCAL}, the {here.sum()} sites of {size[here].min()} to {size[here].max()} patients",
                _gap(gain[:, here]),
            ]
        )
    return rows


def _gap(values: Floats) -> str:
    """Of seeds x sites: the sites of a deal are no independent samples, so their mean is one."""
    return with_width(values.mean(axis=1), "+.4f")
