"""Is the label coded the other way round? Asked only where other sites' trees are worse than chance beyond noise.

A site whose labels are reversed and one with another concept look the same from inside: other sites' trees go against
its labels. Where there is little to learn they do so by chance at every second site. So a person is asked only if the
mean correlation is further below zero than it would be once in two hundred rounds at any of the sites, were there
nothing to find. Noise is that of patients, however many rows they have and however alike the trees are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.forest.traverse import Walker
from spinney.rows.cohort import Cohort

Floats = NDArray[np.float64]

LEVEL = 0.005  # of a round, shared by its sites
BLOCK_CELLS = 4_000_000  # rows x trees held in memory at once


@dataclass(frozen=True)
class Correlation:
    """The mean correlation of some trees' answers with a site's labels, and how sure it is."""

    mean: float
    error: float  # standard error over patients
    patients: int  # of the rarer class

    def question(self, sites: int) -> str | None:
        """What a person is asked, with the figures; nothing where this may be chance at one of so many sites."""
        from scipy.special import stdtrit  # late: it takes long, and hardly ever anybody is asked

        if (
            self.patients < 2
            or not self.error > 0
            or self.mean / self.error > stdtrit(self.patients - 1, LEVEL / sites)
        ):
            return None
        return (
            f"trees of other sites are worse than chance here, beyond noise (mean correlation {self.mean:.2f}, "
            f"standard error {self.error:.2f}): is the label coded the other way round?"
        )


def correlation(walker: Walker, rows: Cohort, trees: NDArray[np.int64], cut: float) -> Correlation:
    """How these trees' answers, yes above `cut`, go with the labels of rows that none of them has seen.

    In first order, a row moves the correlation r of its standardised answer w and label z by z w - r (z^2 + w^2) / 2.
    """
    y = rows.y.astype(np.float64)
    z = (y - y.mean()) / (y.std() or 1.0)
    moves = np.zeros(len(y))
    total = 0.0
    for some in np.array_split(trees, -(-len(trees) * len(y) // BLOCK_CELLS) or 1):
        yes = np.stack([_answers(walker, rows, tree, cut) for tree in some], axis=1)
        deviation = yes.std(axis=0)
        w = (yes - yes.mean(axis=0))[:, deviation > 0] / deviation[deviation > 0]
        r = z @ w / len(y)
        moves += w @ np.ones(len(r)) * z - ((w**2 @ r) + z**2 * r.sum()) / 2
        total += float(r.sum())
    people = np.unique(rows.patients, return_inverse=True)[1]
    by_patient = np.bincount(people, weights=moves) / len(trees)
    spread = np.sum(by_patient**2) * len(by_patient) / max(len(by_patient) - 1, 1)
    return Correlation(total / len(trees), float(np.sqrt(spread)) / len(y), min(rows.patients_by_class()))


def _answers(walker: Walker, rows: Cohort, tree: np.int64, cut: float) -> NDArray[np.float64]:
    here = slice(walker.forest.starts[tree], walker.forest.ends[tree])
    return np.asarray(walker.forest.probability[here].take(walker.leaves(int(tree), rows.X)) > cut, dtype=np.float64)
