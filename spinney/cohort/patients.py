"""A house's own patients, as its nights may use them: arrays of a cohort in the vault, and whom its trees have seen.

This is what is handed to the code that sends. It takes a reference and gives arrays to work on; no row of a table, no
identifier and no path into the vault comes with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.cohort.encoded import read_encoded
from spinney.cohort.tree_membership import forget_grown, remember_grown, unseen_by
from spinney.cohort.vault import Vault
from spinney.connectors.dask_cluster import DaskSettings, cluster_of
from spinney.errors import Declined
from spinney.forest.grow import Spread
from spinney.rows.cohort import Cohort
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.describe import characteristic_vector, vector_names
from spinney.rows.parts import Part
from spinney.study.study import Study


class Patients:
    """Those of one study."""

    def __init__(self, vault: Vault, study: Study, cluster: DaskSettings | None = None) -> None:
        self._vault, self._study, self._cluster = vault, study, cluster

    @property
    def spread(self) -> Spread | None:
        """Where trees grow, if not here."""
        return cluster_of(self._cluster)

    def rows(self, cohort: CohortRef) -> Cohort:
        """The arrays of a cohort that was encoded before."""
        return read_encoded(cohort, self._study)

    def unseen_by(self, trees: Collection[str], cohort: CohortRef) -> NDArray[np.bool_]:
        """Rows of a cohort x own trees (by digest): whether the tree was not grown on the patient."""
        return unseen_by(self._vault, self._study.name, trees, cohort)

    def remember_grown(self, round_: int, memory: Mapping[str, Any], rows: Cohort, cohort: CohortRef) -> None:
        """Keep whom a round's own trees have seen, before the round's memory is destroyed."""
        remember_grown(self._vault, self._study, round_, memory, rows, cohort)

    def forget_grown(self, needed: Collection[int]) -> None:
        """Delete what no model in use needs, but for the newest rounds."""
        forget_grown(self._vault, self._study.name, needed)

    def told_vector(self, cohort: CohortRef) -> dict[str, float]:
        """The characteristic vector as `join` tells it; empty where the cohort is too small to tell."""
        training = self.rows(cohort).rows(Part.TRAINING)
        try:
            vector = characteristic_vector(training, self._study.privacy)
        except Declined:
            return {}
        return dict(zip(vector_names(training, self._study.privacy), vector.tolist(), strict=True))
