"""Which of two models is better on the same rows, and whether that is more than noise, by the study's metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.choice import metrics
from spinney.choice.intervals import delong, intervals, paired
from spinney.rows.cohort import Cohort

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]
NORMAL_95 = 1.959964
RESAMPLES = 200


@dataclass(frozen=True)
class Judge:
    """Measures votes on rows."""

    metric: str
    seed: int

    @classmethod
    def of(cls, study: Study) -> Judge:
        """Who judges by a study's words."""
        return cls(study.choice.metric, study.split.seed)

    def quality(self, rows: Cohort, votes: Floats) -> float:
        """The metric; MCC at the best threshold."""
        if self.metric == "auprc":
            return metrics.auprc(rows.y, votes)
        if self.metric == "mcc":
            return float(metrics.mcc(metrics.confusion(rows.y, _called(rows, votes))))
        return metrics.auroc(rows.y, votes)

    def lead(self, rows: Cohort, ahead: Floats, behind: Floats) -> tuple[float, float]:
        """By how much one leads the other, and the standard error of that."""
        lead = self.quality(rows, ahead) - self.quality(rows, behind)
        if self.metric == "auroc" and rows.patient_count == len(rows):
            return lead, delong(rows.y, ahead, behind)[2]
        measure = metrics.at_threshold(0.5, metrics.mcc)
        if self.metric == "mcc":  # each at its own threshold
            ahead, behind = _called(rows, ahead), _called(rows, behind)
        else:
            measure = metrics.RANKING_AND_ERROR[self.metric]
        spread = paired(rows.y, ahead, behind, rows.patients, {"lead": measure}, RESAMPLES, self.seed)["lead"]
        return lead, (spread.high - spread.low) / (2 * NORMAL_95)

    def error(self, rows: Cohort, votes: Floats) -> float:
        """Standard error of the quality."""
        measure = metrics.at_threshold(0.5, metrics.mcc)
        if self.metric == "mcc":
            votes = _called(rows, votes)
        else:
            measure = metrics.RANKING_AND_ERROR[self.metric]
        spans = intervals(rows.y, {"one": votes}, rows.patients, {"it": measure}, RESAMPLES, self.seed)
        return (spans["one"]["it"].high - spans["one"]["it"].low) / (2 * NORMAL_95)


def _called(rows: Cohort, votes: Floats) -> Floats:
    """Votes as yes or no at their best threshold."""
    return (votes >= metrics.best_threshold(rows.y, votes, "mcc")).astype(np.float64)
