"""What a house's nights may ask about its patients. The vault itself is out of reach here: what sends can't open it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.forest.grow import Spread
from spinney.rows.cohort import Cohort
from spinney.rows.cohort_ref import CohortRef


class PatientAccess(Protocol):
    """Those of one study; `spinney.cohort.patients` has them."""

    @property
    def spread(self) -> Spread | None:
        """Where trees grow, if not here."""

    def rows(self, cohort: CohortRef) -> Cohort:
        """The arrays of a cohort."""

    def unseen_by(self, trees: Collection[str], cohort: CohortRef) -> NDArray[np.bool_]:
        """Rows of a cohort x own trees (by digest): whether the tree was not grown on the patient."""

    def remember_grown(self, round_: int, memory: Mapping[str, Any], rows: Cohort, cohort: CohortRef) -> None:
        """Keep whom a round's own trees have seen."""

    def forget_grown(self, needed: Collection[int]) -> None:
        """Delete what no model in use needs."""
