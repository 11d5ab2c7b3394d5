"""The twelve published environments, dealt out at random again and again, beside the published figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy_data import ENVIRONMENTS, LABELS, PUBLISHED, dealt, environment_study
from benchmarks.accuracy_models import (
    ACCOMPANIED,
    BETTER,
    CALIBRATED,
    LINEAR,
    LOCAL,
    METRICS,
    Seen,
    boosted,
    forests,
)
from benchmarks.accuracy_tables import counted, span, with_width
from benchmarks.harness import Figure, table
from benchmarks.pictures import Panel, save
from spinney.rows.cohort import cohort_from_frame

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
    *LINEAR,
)
BESIDE = ("AUPRC", "Brier score")
BELOW = ("BOFRF as published", "chosen", ACCOMPANIED)
COMPARED = ("BOPPID", "FedRF", "BOFRF as published", "chosen", "pooled", "local blend", ACCOMPANIED)
PAIRS = (
    ("chosen", "FedRF"),
    ("chosen", "BOFRF as published"),
    ("chosen", "personalised"),
    ("chosen", "BOPPID"),
    ("chosen", "pooled"),
    ("local blend", "chosen"),
    ("federated linear", "chosen"),
    (ACCOMPANIED, "chosen"),
    (ACCOMPANIED, "local blend"),
    ("personalised on test rows", "personalised"),
)
SIZES = (0, 150, 250, 400, 1000)  # patients of a site, from each to below the next


def environment_seed(data: Path, trees: int, job: tuple[str, int]) -> Seen:
    """Every figure of every model at every site of one random deal, and what the sites chose."""
    name, seed = job
    environment = ENVIRONMENTS[name]
    whole = pd.read_csv(data / f"{environment.data}.csv")
    study = environment_study(environment, whole).with_settings(forest={"trees": trees}, split={"seed": seed})
    deal = dealt(whole, study.label.name, environment.sites, seed)
    cohorts = {site: cohort_from_frame(rows, study) for site, rows in deal.items()}
    voted, stumps = forests(study, cohorts), boosted(study, cohorts)
    everything = [replace(one, votes={**one.votes, **stumps[site]}) for site, one in voted.items()]
    return Seen.of(everything, (*MODELS, *CALIBRATED))


@dataclass(frozen=True)
class Deals:
    """All deals of all environments."""

    done: Mapping[tuple[str, int], Seen]
    seeds: int

    def of(self, metric: str, model: str, *names: str) -> Floats:
        """Deals x sites of some environments; of all if none is named."""
        return np.hstack(
            [
                [self.done[name, seed].reached[metric][model] for seed in range(self.seeds)]
                for name in names or ENVIRONMENTS
            ]
        )

    def gap(self, model: str, base: str, *names: str) -> Floats:
        """Difference in AUROC, deals x sites."""
        return self.of("AUROC", model, *names) - self.of("AUROC", base, *names)

    def choices(self, *names: str) -> Counter[str]:
        """What was chosen how often."""
        return Counter(
            one for name in names or ENVIRONMENTS for seed in range(self.seeds) for one in self.done[name, seed].choices
        )


def environments_figures(deals: Deals) -> list[Figure]:
    """Every deal's mean over sites."""
    return [
        Figure(f"{name}/{model}/{metric}", metric, tuple(deals.of(metric, model, name).mean(axis=1)), BETTER[metric])
        for name in ENVIRONMENTS
        for metric in METRICS
        for model in (*MODELS, *CALIBRATED)
    ]


def environments_report(deals: Deals) -> list[str]:
    """Means over sites beside the published ones, with intervals over deals."""
    groups = {**{name: (name,) for name in ENVIRONMENTS}, "all": ()}
    sites = [len(one.sites) for one in ENVIRONMENTS.values()]
    published = {name: one.published for name, one in ENVIRONMENTS.items()}
    published["all"] = tuple(np.average([*published.values()], axis=0, weights=sites))
    levels = [
        [label, *(with_width(deals.of("AUROC", one, *names).mean(axis=1)) for one in MODELS)]
        for label, names in groups.items()
    ]
    gaps = [
        [label, *_gaps(deals, published[label], names), counted(deals.choices(*names))]
        for label, names in groups.items()
    ]
    return [
        f"### Twelve environments\n\n**AUROC**, means over sites and {deals.seeds} random deals ± 95 % over deals:",
        table(("environment", *MODELS), levels),
        "**Published AUROC**, means over sites of one deal chosen by the authors:",
        table(("environment", *PUBLISHED), [[name, *(f"{v:.3f}" for v in of)] for name, of in published.items()]),
        "**Differences from the local forest** (BOPPID: from local AdaBoost), in brackets as published; share of sites "
        "and deals whose AUROC is below that of the local forest, BOFRF as published, chosen, chosen with companion; "
        "choices:",
        table(("environment", *COMPARED, "below local", "choices"), gaps),
        "**AUPRC and Brier score** (less is better) by data set, the same means and intervals:",
        _by_data_set(deals),
        "**Paired differences** over all sites and deals:",
        table(("difference", "AUROC"), _paired(deals)),
    ]


def draw_environments(deals: Deals) -> None:
    """The gain over the local forest, here and as published."""
    here = {
        model: [span(deals.gap(model, LOCAL, name).mean(axis=1)) for name in ENVIRONMENTS]
        for model in ("chosen", "pooled")
    }
    local, bofrf = PUBLISHED.index(LOCAL), PUBLISHED.index("BOFRF as published")
    told = [one.published[bofrf] - one.published[local] for one in ENVIRONMENTS.values()]
    series = {**here, "BOFRF, figures of the publication": [(gain, gain, gain) for gain in told]}
    save(
        "environments",
        "Gain in AUROC over the local forest in twelve environments",
        "Per environment the chosen and the pooled forest with 95 % over random deals, beside the published gain of "
        "BOFRF on one deal. benchmarks/README.md has the figures.",
        [Panel("AUROC minus that of the local forest", [*ENVIRONMENTS], series)],
        joined=False,
        wide=1.6,
    )


def _by_data_set(deals: Deals) -> str:
    sets = {one: [name for name, of in ENVIRONMENTS.items() if of.data == one] for one in LABELS} | {"all": []}
    lines = [
        [
            model,
            *(with_width(deals.of(metric, model, *names).mean(axis=1)) for metric in BESIDE for names in sets.values()),
        ]
        for model in (*MODELS, *CALIBRATED)
    ]
    return table(("model", *(f"{metric}, {label}" for metric in BESIDE for label in sets)), lines)


def _gaps(deals: Deals, published: Sequence[float], names: Sequence[str]) -> list[str]:
    told = dict(zip(PUBLISHED, published, strict=True))
    cells = []
    for model in COMPARED:
        base = "local AdaBoost" if model == "BOPPID" else LOCAL
        beside = f" ({told[model] - told[base]:+.3f})" if model in told else ""
        cells.append(with_width(deals.gap(model, base, *names).mean(axis=1), "+.3f") + beside)
    below = [f"{np.mean(deals.gap(model, LOCAL, *names) < 0):.0%}" for model in BELOW]
    return [*cells, ", ".join(below)]


def _paired(deals: Deals) -> list[list[str]]:
    rows = [[f"{one} - {other}", _gap(deals.gap(one, other))] for one, other in PAIRS]
    size = np.array([rows for environment in ENVIRONMENTS.values() for rows, _ in environment.sites])
    gain = deals.gap("chosen", LOCAL)
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
