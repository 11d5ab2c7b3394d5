"""Trees that stay at home: grown anew on the last cohort, in place of own trees that may vote no more.

Nobody else is lent them or told of them. Whom they are grown on is kept as of all own trees, so that they are judged
honestly, and fall silent in their turn.
"""

from __future__ import annotations

import numpy as np

from spinney.choice.model import FederatedForest
from spinney.cohort.drift import accepted_cohorts
from spinney.cohort.encoded import encode_table
from spinney.cohort.tree_membership import keep_grown
from spinney.cohort.vault import Vault
from spinney.federation.forest_site import present_only, rounding_of, seed_of
from spinney.forest.export import export_forest
from spinney.forest.grow import grow
from spinney.forest.tree import Forest
from spinney.rows.encode import filled
from spinney.rows.parts import Part
from spinney.study.study import Study


def regrow(vault: Vault, study: Study, site: str, model: FederatedForest, round_: int, trees: int) -> Forest | None:
    """So many trees for a model of a round; None where the vault has no cohort of its study to grow them on.

    The same cohort gives the same trees, so that a run that was killed can be repeated.
    """
    known = vault.newest_whole(accepted_cohorts(vault, study))
    if known is None or model.features_ != study.features:
        return None
    ref, _ = known
    cohort = encode_table(vault, ref, study)
    training = cohort.rows(Part.TRAINING)
    if not len(training):
        return None
    matrix = present_only(training)
    if model.fill_ is not None:
        matrix = filled(matrix, training.present, model.fill_)
    floor, rounding = study.privacy.smallest_leaf, rounding_of(study, cohort)
    matrix = rounding.snapped(matrix)
    _, patients = np.unique(training.patients, return_inverse=True)
    seed = seed_of(study, round_, f"{site}/at home/{ref.digest}", training.salt)
    settings = study.forest.model_copy(update={"trees": trees})
    grown = grow(matrix, training.y, patients, settings, seed, rounding=rounding, floor=floor)
    forest = export_forest(grown.trees, grown.drawn, matrix, training.y, patients, floor=floor, rounding=rounding)
    keep_grown(
        vault, study.name, f"{round_}-{ref.digest[:16]}", forest.digests, (grown.drawn[:, patients] > 0).T, cohort, ref
    )
    return forest
