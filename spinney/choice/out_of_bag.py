"""Figures of a site whose test patients are too few: on the rows to choose on, marked as such.

Votes there are honest, own trees having seen none of the patients that they judge, but the model was chosen by them.
Calibration and decision threshold are fitted on the other folds, so that no patient has a say in what is said of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.choice import metrics
from spinney.choice.blend import line_of
from spinney.choice.intervals import resampled
from spinney.choice.metrics import RANKING_AND_ERROR, THRESHOLDED, Metric
from spinney.choice.outcome import Decision, OutOfBag
from spinney.rows.floors import FEWEST
from spinney.rows.parts import folds

if TYPE_CHECKING:
    from spinney.choice.personalise import Chooser

Floats = NDArray[np.float64]

ERROR = ("brier",)
CALLED: dict[str, Metric] = {name: metrics.at_threshold(0.5, of) for name, of in THRESHOLDED.items()}


def out_of_bag(chooser: Chooser, decision: Decision) -> OutOfBag | None:
    """The local forest and the chosen model side by side; None with a handful of patients of a class."""
    rows = chooser.judged_rows
    if not chooser.rules.judged or chooser.patients < FEWEST:
        return None
    ranking = {name: of for name, of in RANKING_AND_ERROR.items() if name not in ERROR}
    error = {name: RANKING_AND_ERROR[name] for name in ERROR}
    asked: dict[str, tuple[Floats, Mapping[str, Metric]]] = {}
    for label, name in (("local", "local"), ("chosen", decision.name)):
        said, called = cross_fitted(chooser, name)
        asked |= {
            f"{label} ranks": (chooser.judged[name], ranking),
            f"{label} says": (said, error),
            f"{label} calls": (called, CALLED),
        }
    drawn = resampled(rows.y, asked, rows.patients, chooser.study.choice.bootstrap, chooser.study.split.seed)
    together = {
        label: {**drawn[f"{label} ranks"], **drawn[f"{label} says"], **drawn[f"{label} calls"]}
        for label in ("local", "chosen")
    }
    return OutOfBag(
        {label: {name: one.figure() for name, one in of.items()} for label, of in together.items()},
        {name: (together["chosen"][name] - together["local"][name]).figure() for name in RANKING_AND_ERROR},
    )


def cross_fitted(chooser: Chooser, name: str) -> tuple[Floats, Floats]:
    """A candidate's probabilities and calls (0 or 1), calibrated and cut by what the other folds say."""
    rows, votes, study = chooser.judged_rows, chooser.judged[name], chooser.study
    fold = folds(rows.y, rows.patients, study.choice.folds, study.split.seed)
    said, called = votes.copy(), np.zeros(len(votes))
    for number in np.unique(fold):
        here, others = fold == number, fold != number
        if study.choice.calibrate and chooser.rules.calibrates:
            line = line_of(votes[others], rows.y[others])
            said[here], known = (metrics.calibrated(votes[one], *line) for one in (here, others))
        else:
            known = votes[others]
        cut = metrics.best_threshold(rows.y[others], known, study.choice.threshold, study.choice.sensitivity)
        called[here] = said[here] >= cut
    return said, called
