"""The champion takes part in the choice: judged on the same rows as tonight's model, and kept if that is worse.

Its own trees vote only on patients that they were not grown on; new patients are unseen by all of them. Foreign trees
have seen nobody of this house.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.choice.judge import Judge
from spinney.choice.outcome import Decision, Succession
from spinney.rows.cohort import Cohort
from spinney.rows.encode import Column

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BEYOND_CHANCE = 2.8  # standard errors of one measurement: 2 of the difference of two


@dataclass(frozen=True)
class Incumbent:
    """The model in use."""

    version: str
    model: FederatedForest = field(repr=False)
    own: NDArray[np.int64]  # places of this house's trees in it
    unseen: Flags  # rows of tonight's cohort x own trees: the tree was not grown on this patient
    promised: float | None = None  # what it reached by the study's metric when it was chosen

    def votes(self, cohort: Cohort) -> Floats:
        """Its votes on tonight's rows; NaN where no tree has a say. Columns that the study has changed are absent."""
        place = {_meaning(column): at for at, column in enumerate(cohort.columns)}
        at = np.array([place.get(_meaning(column), -1) for column in self.model.columns_])
        present = (at >= 0) & cohort.present[at]
        matrix = np.where(present, cohort.X[:, at], np.float32(np.nan))
        return self.model.honest_votes(matrix, present, self.own, self.unseen)


@dataclass(frozen=True)
class Challenge:
    """Tonight's model and the champion on the rows to choose on."""

    rows: Cohort
    tonight: Floats
    champion: Floats  # NaN where it has no say
    judge: Judge
    fewest: int  # patients of either class

    def succession(self, incumbent: Incumbent, decision: Decision, judged: bool) -> Succession:
        """A candidate replaces the champion unless it is worse beyond noise, or a person has to look first."""
        if decision.question:
            return Succession(incumbent.version, False, "the champion stays until someone has answered the question")
        both = ~np.isnan(self.champion)
        rows = self.rows.where(both)
        fewest = min(rows.patients_by_class())
        if not judged:
            return Succession(incumbent.version, True, "this algorithm leaves nothing to compare the champion with")
        if not both.any():
            return Succession(incumbent.version, True, "no tree of the champion has a say here any more")
        if fewest < self.fewest:
            few = f"{fewest} patients of one class are too few to compare with the champion"
            return Succession(incumbent.version, True, f"{few} (the study wants {self.fewest}): tonight's model stands")
        return self._compared(incumbent, rows, self.tonight[both], self.champion[both])

    def doubt(self, incumbent: Incumbent) -> str | None:
        """Where the champion is far below its own promise, it is tonight's rows that have changed: ask a person."""
        both = ~np.isnan(self.champion)
        rows = self.rows.where(both)
        if incumbent.promised is None or min(rows.patients_by_class()) < self.fewest:
            return None
        reached = self.judge.quality(rows, self.champion[both])
        if incumbent.promised - reached <= BEYOND_CHANCE * self.judge.error(rows, self.champion[both]):
            return None
        return (
            f"the champion reaches {reached:.3f} on tonight's rows and promised {incumbent.promised:.3f}: "
            "have the data or the label changed?"
        )

    def _compared(self, incumbent: Incumbent, rows: Cohort, tonight: Floats, champion: Floats) -> Succession:
        lead, error = self.judge.lead(rows, champion, tonight)
        worse = bool(lead > error)
        noise = f"by {lead:.3f}, standard error {error:.3f}"
        return Succession(
            incumbent.version,
            not worse,
            f"the champion is better beyond noise ({noise})" if worse else "it is not worse beyond noise",
            self.judge.quality(rows, champion),
            self.judge.quality(rows, tonight),
            rows.patient_count,
        )


def _meaning(column: Column) -> tuple[object, ...]:
    feature = column.feature
    return column.name, feature.kind, feature.range, feature.unit
