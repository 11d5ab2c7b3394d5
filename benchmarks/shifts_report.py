"""The sweeps as figures and as tables: differences from the local forest, and who loses by taking part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy_models import BETTER, CALIBRATED, HELD_OUT, LINEAR, LOCAL, METRICS, Seen
from benchmarks.accuracy_tables import counted, half_width, with_width
from benchmarks.harness import Figure, table
from benchmarks.shifts_data import TEST_ROWS, Federation, Sweep

Floats = NDArray[np.float64]

FORESTS = ("FedRF", "BOFRF as published", HELD_OUT, "our weighting", "chosen", *LINEAR)
RANKED = (LOCAL, *FORESTS, "local AdaBoost", "BOPPID", "pooled")
JOINED = (*FORESTS, "BOPPID", "pooled")
MODELS = (*RANKED, *CALIBRATED)
PEERS = ("FedRF", "BOFRF as published", HELD_OUT, "our weighting", "BOPPID", "pooled")
COMPARISONS = (
    *(("AUROC", model, LOCAL) for model in JOINED),
    ("Brier score", "chosen, calibrated", "local, calibrated"),
)


Results = Mapping[Federation, Sequence[Seen]]


@dataclass(frozen=True)
class Effort:
    """How thoroughly a federation is looked at."""

    trees: int
    repeats: int

    def __str__(self) -> str:
        return f"{self.trees} trees a site, {self.repeats} repeats"


@dataclass(frozen=True)
class Row:
    """Some sites of one setting of one sweep."""

    sweep: str
    setting: str
    seen: Sequence[Seen]
    who: str = ""
    first: int = 0
    end: int | None = None

    @property
    def sites(self) -> slice:
        """Where they are among all sites."""
        return slice(self.first, self.end)

    @property
    def name(self) -> str:
        """As the tables say it."""
        return ", ".join(filter(None, (f"{self.sweep}: {self.setting}", self.who)))

    def of(self, metric: str, model: str) -> Floats:
        """Repeats x sites."""
        return np.array([one.reached[metric][model][self.sites] for one in self.seen])

    def gap(self, metric: str, model: str, base: str = LOCAL) -> Floats:
        """Difference of two models, repeats x sites."""
        return self.of(metric, model) - self.of(metric, base)

    def choices(self) -> Counter[str]:
        """What was chosen how often."""
        return Counter(choice for one in self.seen for choice in one.choices[self.sites])


def rows_of(sweep: Sweep, results: Results) -> Iterator[Row]:
    """All sites of each setting together; where one is odd, that one and the others."""
    for setting, federation in sweep.settings.items():
        seen = results[federation]
        if not sweep.odd:
            yield Row(sweep.title, setting, seen)
        else:
            yield Row(sweep.title, setting, seen, "that site", end=1)
            yield Row(sweep.title, setting, seen, "the others", first=1)


def figures(sweeps: Sequence[Sweep], results: Results) -> list[Figure]:
    """Every repeat's mean over sites."""
    return [
        Figure(
            f"{row.name}/{model}/{metric}",
            metric,
            tuple(row.of(metric, model).mean(axis=1).tolist()),
            BETTER[metric],
        )
        for sweep in sweeps
        for row in rows_of(sweep, results)
        for metric in METRICS
        for model in MODELS
    ]


def report(sweeps: Sequence[Sweep], results: Results, usual: Effort, efforts: Mapping[Federation, Effort]) -> str:
    """The tables."""
    rows = [row for sweep in sweeps for row in rows_of(sweep, results)]
    less = [
        f"*{sweep.title}: {setting}* with {efforts[federation]}"
        for sweep in sweeps
        for setting, federation in sweep.settings.items()
        if efforts[federation] != usual
    ]
    parts = [
        f"{usual}{''.join(f'; {one}' for one in less)}. {TEST_ROWS:,} test patients a site. ± is Student's 95 % over "
        "repeats of the mean over sites.",
        "**AUROC** of the local forest and differences from it; choices of all sites and repeats:",
        _differences(rows, "AUROC", RANKED, choices=True),
        "**AUPRC** of the local forest and differences from it:",
        _differences(rows, "AUPRC", RANKED),
        "**Brier score** of the local forest and differences from it (below 0 is better):",
        _differences(rows, "Brier score", MODELS),
        "**Who loses by taking part**: share of sites and repeats with an AUROC below that of the site's local forest, "
        "and how many sites are below beyond noise (their 95 % over repeats is all below 0; one in forty would be by "
        "chance). Last: the same for the calibrated Brier score against the calibrated local forest.",
        _losers(rows, [Row("", "", seen) for seen in results.values()]),
        "**chosen against the others**, AUROC; *behind* where the interval is all below 0:",
        table(("sites", *PEERS), [[row.name, *(_against(row, peer) for peer in PEERS)] for row in rows]),
    ]
    return "\n\n".join(parts)


def _differences(rows: Sequence[Row], metric: str, models: Sequence[str], choices: bool = False) -> str:
    lines = []
    for row in rows:
        gaps = [with_width(row.gap(metric, model).mean(axis=1), "+.3f") for model in models[1:]]
        told = [counted(row.choices())] if choices else []
        lines.append([row.name, f"{row.of(metric, LOCAL).mean():.3f}", *gaps, *told])
    return table(("sites", *models, *["choices"] * choices), lines)


def _losers(rows: Sequence[Row], everybody: Sequence[Row]) -> str:
    lines = [[row.name, *(_lost([row], *comparison) for comparison in COMPARISONS)] for row in rows]
    lines.append(["**every site once**", *(_lost(everybody, *comparison) for comparison in COMPARISONS)])
    return table(("sites", *JOINED, "chosen, calibrated: Brier"), lines)


def losing(row: Row, metric: str, model: str, base: str) -> tuple[list[bool], list[bool]]:
    """Of each site and repeat whether it is worse off; of each site whether it is so beyond noise."""
    gap = row.gap(metric, model, base) * (1 if BETTER[metric] == "more" else -1)
    beyond = [bool(site.mean() + half_width(site) < 0) if np.ptp(site) else bool(site[0] < 0) for site in gap.T]
    return (gap < 0).ravel().tolist(), beyond


def _lost(rows: Sequence[Row], metric: str, model: str, base: str) -> str:
    lost = [losing(row, metric, model, base) for row in rows]
    below, beyond = (np.concatenate(flags) for flags in zip(*lost, strict=True))
    return f"{below.mean():.0%}, {beyond.sum()} of {len(beyond)}"


def _against(row: Row, peer: str) -> str:
    gap = row.gap("AUROC", "chosen", peer).mean(axis=1)
    behind = " behind" if gap.mean() + half_width(gap) < 0 else ""
    return with_width(gap, "+.3f") + behind
