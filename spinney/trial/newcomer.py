"""What a hospital that brings nothing would get from the others: their trees, with the weights of their sum.

It has no patients with known outcomes, so nothing is chosen or calibrated there: only the ranking means something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.choice.metrics import Figure
from spinney.choice.model import FederatedForest
from spinney.choice.split_votes import SplitVotes, auroc_over_splits
from spinney.errors import RoundVoid, StudyInvalid
from spinney.federation.forest_site import rounding_of
from spinney.federation.messages import Weights
from spinney.forest.codec import TreeLimits, unpack_forest
from spinney.forest.tree import join_forests
from spinney.rows.cohort import Cohort
from spinney.trial.repeats import Draw, reseeded
from spinney.trial.simulate import Simulation, simulate

if TYPE_CHECKING:
    from spinney.study.study import Study


def without_each(study: Study, draw: Draw, repeats: int, said: Callable[[str], None], **how: Any) -> dict[str, Figure]:
    """By site the AUROC, on all of its rows, of what the others make without it; over `repeats` growings."""
    tested: dict[str, list[SplitVotes]] = {}
    for repeat in range(repeats):
        again = reseeded(study, repeat)
        cohorts = draw(again)
        for site, rows in cohorts.items():
            said(site)
            others = {name: cohort for name, cohort in cohorts.items() if name != site}
            model = newcomers_model(again, simulate(again, others, **how), others)
            votes = model.votes(rows.X, rows.present)
            tested.setdefault(site, []).append(SplitVotes(rows.patients, rows.y, {"others": votes}))
    figures = {site: auroc_over_splits(splits, "others", study.split.seed) for site, splits in tested.items()}
    return {site: figure for site, figure in figures.items() if figure is not None}


def newcomers_model(study: Study, simulation: Simulation, cohorts: Mapping[str, Cohort]) -> FederatedForest:
    """The common trees with their common weights, as a house has them that was not in the sum."""
    order = simulation.release.order_of("") if simulation.release is not None and simulation.release.orders else None
    if not isinstance(order, Weights):
        raise StudyInvalid(
            [f"{study.algorithm.name} leaves no common trees, so a hospital that brings nothing gets none"]
        )
    if not len(order.manifest):
        raise RoundVoid("the others have no tree in common")
    rounding, limits = rounding_of(study, next(iter(cohorts.values()))), TreeLimits.of(study.forest)
    parts = [
        unpack_forest(simulation.parcels[parcel.digest], rounding, limits).take(np.flatnonzero(taken))
        for parcel, taken in zip(order.manifest.forests, order.manifest.taken, strict=True)
    ]
    newcomer = getattr(study.algorithm, "newcomer", None)
    weights = np.ones(len(order.weights)) if newcomer is None else newcomer(order.weights)
    return FederatedForest.from_trees(join_forests(parts), order.manifest.owners, weights, study.features)
