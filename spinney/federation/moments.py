"""One secure sum per epoch of what all algorithms want to know of the columns: rows known, sum and sum of squares.

From it come means and deviations, the share of rows without a value, and the pooled base rate of the outcome. A site
tells rows rounded, nothing of a column that too few patients have, and nothing of a handful who differ from the others:
they are told as if they were like them, as in the characteristic vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused
from spinney.federation.messages import AddOrder, OpenedSum
from spinney.federation.real_sums import Adding, RealSums, Sum, Terms
from spinney.rows.describe import known_rows, most_common, patients_known, rounded_rows
from spinney.rows.moments import Moments as Moments

if TYPE_CHECKING:
    from spinney.rows.cohort import Cohort
    from spinney.study.settings import Privacy

Floats = NDArray[np.float64]

MOMENTS = "moments"


def moment_terms(columns: int) -> Terms:
    """Two numbers about rows and three per column, to each of which a row adds 0 to 1."""
    return Terms(2 + 3 * columns, 0.0, 1.0)


def told_moments(training: Cohort, privacy: Privacy) -> Floats:
    """What a site adds: rows, positives, and of each column rows known, sum, sum of squares."""
    rows = rounded_rows(len(training), privacy)
    positives = min(rounded_rows(int(training.y.sum()), privacy), rows)
    weight = np.minimum(np.where(_tellable(training, privacy), known_rows(training, privacy), 0), rows)
    told = [_means(training.X[:, place], training.patients, privacy) for place in range(len(training.columns))]
    mean, square = np.array(told, dtype=np.float64).reshape(-1, 2).T
    columns = np.stack([weight, weight * mean, weight * square], axis=1)
    return np.concatenate([[rows, positives], columns.reshape(-1)]).astype(np.float64)


def _tellable(training: Cohort, privacy: Privacy) -> NDArray[np.bool_]:
    return np.asarray((patients_known(training) >= privacy.smallest_cohort) & training.present)


def _means(values: NDArray[np.float32], patients: NDArray[np.int64], privacy: Privacy) -> tuple[float, float]:
    """Mean of a column and of its squares; of the common value only, where hardly anybody has another one."""
    known = values[~np.isnan(values)].astype(np.float64)
    if not len(known):
        return 0.0, 0.0
    common, others = most_common(values, patients)
    if others < privacy.smallest_leaf:
        return common, common**2
    return float(known.mean()), float((known**2).mean())


class MomentSums(RealSums):
    """A part that tells moments; algorithms with other sums, too, add theirs to `summands`."""

    def summands(self, order: AddOrder) -> tuple[Floats, Terms]:
        """The moments of this site."""
        if order.subject != MOMENTS:
            raise Refused(f"{order.subject} is no sum of this algorithm")
        return told_moments(self.training, self.house.study.privacy), moment_terms(len(self.house.cohort.columns))

    def moments(self, opened: OpenedSum) -> Moments:
        """Those of all sites, from how the sum was opened; remembered, and never others in one epoch."""
        if opened.subject != MOMENTS:
            raise Refused("this is not how the moments were opened")
        values = self.reopened(opened, moment_terms(len(self.house.cohort.columns)))
        if not np.array_equal(self.house.memory.setdefault("told-moments", values), values):
            raise Refused("this house knows other moments of this epoch")
        return Moments.of(values)


def federated_moments(adding: Adding, columns: int) -> tuple[Moments, Sum]:
    """The moments of all sites, and how they were opened."""
    found = adding.total(MOMENTS, moment_terms(columns))
    return Moments.of(found.values), found
