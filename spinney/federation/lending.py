"""Whether a site may lend what it has grown: it attacks its own trees before anybody else can."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.attacks import own_release
from spinney.attacks.membership import Exporter
from spinney.attacks.own_release import FEWEST_OTHERS, OwnVerdict
from spinney.forest.export import export_forest, grid_of
from spinney.forest.grow import Spread, grow
from spinney.forest.tree import Forest
from spinney.rows.cohort import Cohort
from spinney.rows.encode import Matrix
from spinney.rows.parts import Part

if TYPE_CHECKING:
    from spinney.study.study import Study

TOO_FEW = (
    f"what the trees that this house lends tell was not measured here: fewer than {FEWEST_OTHERS} patients are kept "
    "aside; `python -m benchmarks.privacy` says what trees under such a floor tell on public data"
)
WITHHELD = "this house lends no trees: {}, and the study allows an advantage of {:g} over guessing (2 AUC - 1)"


def exporter_of(study: Study, cohort: Cohort, floor: int, jobs: int = 1, spread: Spread | None = None) -> Exporter:
    """How a site lends: rows as its trees know them, and so many patients in a leaf."""
    least = max(study.forest.min_samples_leaf, floor)
    settings = study.forest.model_copy(update={"min_samples_leaf": least})
    grid = grid_of(cohort.columns, study.privacy.probability_precision)

    def export(X: Matrix, y: NDArray[np.int8], seed: int) -> Forest:
        patients = np.arange(len(y))
        grown = grow(X, y, patients, settings, seed, jobs, spread, rounding=grid, floor=floor)
        return export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=grid, jobs=jobs)

    return export


def attacked(
    study: Study,
    cohort: Cohort,
    floor: int,
    release: Forest | None = None,
    *,
    jobs: int = 1,
    spread: Spread | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> OwnVerdict | None:
    """What a release tells of who trained it; None where too few patients are kept aside to say.

    Without a release one is grown, as it would be lent tonight.
    """
    _, first = np.unique(cohort.patients, return_index=True)
    people = cohort.at(first)
    grid = grid_of(cohort.columns, study.privacy.probability_precision)
    X = grid.snapped(np.where(people.present, people.X, np.float32(0.0)))
    member = people.part == Part.TRAINING
    exporter = exporter_of(study, cohort, floor, jobs, spread)
    if release is None:
        release = exporter(X[member], people.y[member], study.split.seed)
    return own_release.attack(release, exporter, X, people.y, member, go_on=go_on)
