"""How a site judges candidates, by its size: always on rows that no own vote has learned from.

    few patients    cross-validation, repeated with other folds
    more            cross-validation once
    many            the validation part (see `spinney.rows.parts`)

Own trees vote out of bag on training rows, so folds only decide which rows are taken off the site's own counts. However
often that is repeated, every row ends with one vote, the mean: standard errors stay those of patients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part, folds

if TYPE_CHECKING:
    from spinney.study.study import Study

FEW, REPEATS = 1000, 10


@dataclass(frozen=True)
class Way:
    """On which rows candidates are judged, and how."""

    part: Part
    words: str


def way_of(cohort: Cohort, study: Study) -> Way:
    """How this cohort's candidates are judged."""
    if np.any(cohort.part == Part.VALIDATION):
        return Way(Part.VALIDATION, "the validation part")
    repeats = repeats_of(cohort.rows(Part.TRAINING), study)
    often = f", repeated {repeats} times with other folds" if repeats > 1 else ""
    return Way(Part.TRAINING, f"{study.choice.folds}-fold cross-validation{often}")


def repeats_of(training: Cohort, study: Study) -> int:
    """How often the cross-validation is repeated."""
    return study.choice.repeats or (REPEATS if training.patient_count < FEW else 1)


def folds_of(training: Cohort, study: Study) -> NDArray[np.int64]:
    """The fold of every training row in every repeat (repeats x rows): the same for counting and for choosing."""
    rows, count, seed = (training.y, training.patients), study.choice.folds, study.split.seed
    return np.stack([folds(*rows, count, seed, repeat) for repeat in range(repeats_of(training, study))])
