"""The sweeps as pictures for docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.accuracy_models import LOCAL
from benchmarks.accuracy_tables import span
from benchmarks.pictures import Panel, Span, save
from benchmarks.shifts_data import Sweep
from benchmarks.shifts_report import Results, Row, losing, rows_of

RANKING = ("chosen", "BOFRF as published", "BOPPID", "pooled")
PROBABILITY = ("chosen, calibrated", "BOFRF as published", "local, calibrated", "pooled")
LOSING = ("chosen", "our weighting", "BOFRF as published", "BOPPID")


def draw(sweeps: Sequence[Sweep], results: Results) -> None:
    """All pictures of the sweeps."""
    groups = [group for sweep in sweeps for group in _groups(sweep, results)]
    save(
        "shifts-auroc",
        "Gain in AUROC over the local forest",
        "One chart per way in which hospitals differ. Above the line at 0 a model ranks patients better than the local "
        "forest does, below it worse. Bars are 95 % over repeats. benchmarks/README.md has the figures.",
        [_panel(title, rows, "AUROC", RANKING) for title, rows in groups],
        joined=True,
        one_scale=False,
    )
    save(
        "shifts-brier",
        "Change of the Brier score against the local forest",
        "One chart per way in which hospitals differ. Below the line at 0 a model's probabilities are nearer to what "
        "happened than those of the local forest, above it farther. Bars are 95 % over repeats.",
        [_panel(title, rows, "Brier score", PROBABILITY) for title, rows in groups],
        joined=True,
    )
    save(
        "shifts-losing",
        "Share of sites and repeats that rank worse than with their local forest",
        "One chart per way in which hospitals differ; 0 is best.",
        [_lost_panel(title, rows) for title, rows in groups],
        joined=True,
        form=".0%",
    )


def _groups(sweep: Sweep, results: Results) -> list[tuple[str, list[Row]]]:
    by_who: dict[str, list[Row]] = {}
    for row in rows_of(sweep, results):
        by_who.setdefault(row.who, []).append(row)
    return [(f"{sweep.title}: {who}" if who else sweep.title, rows) for who, rows in by_who.items()]


def _panel(title: str, rows: Sequence[Row], metric: str, models: Sequence[str]) -> Panel:
    spans = {model: [span(row.gap(metric, model).mean(axis=1)) for row in rows] for model in models}
    return Panel(title, [row.setting for row in rows], spans)


def _lost_panel(title: str, rows: Sequence[Row]) -> Panel:
    def share(row: Row, model: str) -> Span:
        below = np.mean(losing(row, "AUROC", model, LOCAL)[0])
        return (below, below, below)

    return Panel(title, [row.setting for row in rows], {model: [share(row, model) for row in rows] for model in LOSING})
