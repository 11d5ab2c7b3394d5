"""Who was there? A site asks it of its own release before it is lent: its training patients against its others.

The strongest attack of the dossier that a site can afford: likelihood ratios over shadow forests that the site grows
itself, of one row of each patient. It knows more than a peer: its own other patients are as alike as can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.membership import Exporter, evidence, grow_shadows, likelihood_ratios
from spinney.attacks.verdict import AttackResult, Flags, judge
from spinney.forest.tree import Forest
from spinney.rows.encode import Matrix

FEWEST_OTHERS = 200
FORESTS = 48
SECONDS = 120.0


@dataclass(frozen=True)
class OwnVerdict:
    """What came of an attack on an own release, and how many patients it was about."""

    verdict: AttackResult
    members: int
    others: int

    @property
    def words(self) -> str:
        """For a page: who was attacked, and with what success."""
        auc, found = self.verdict.auc, self.verdict.found
        return (
            f"an attack on the trees that this house lends tells who trained them with an area under the curve of "
            f"{auc.value:.2f} ({auc.low:.2f} to {auc.high:.2f}; guessing is 0.50), and finds {found.value:.0%} of them "
            "where one of a hundred others is accused wrongly"
        )

    def above(self, largest: float) -> bool:
        """Whether the advantage is larger than this beyond doubt: by the lower end of its interval."""
        return bool(self.verdict.advantage.low > largest)


def attack(
    release: Forest,
    exporter: Exporter,
    X: Matrix,
    y: NDArray[np.int8],
    member: Flags,
    *,
    forests: int = FORESTS,
    seed: int = 0,
    go_on: Callable[[], bool] = lambda: True,
) -> OwnVerdict | None:
    """One row per patient, and who trained the release; None where too few others are here to tell."""
    others = int(np.count_nonzero(~member))
    if others < FEWEST_OTHERS or not member.any():
        return None
    shadows = grow_shadows(exporter, X, y, forests, seed=seed, go_on=go_on)
    ratios = likelihood_ratios(shadows, evidence(release, X, y))
    return OwnVerdict(judge(member[None], ratios[None], seed), int(member.sum()), others)
