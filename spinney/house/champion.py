"""A site's champion in tonight's choice: from the registry, pinned to the round, judged on patients it has not seen."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import numpy as np

from spinney.choice.incumbent import Incumbent
from spinney.connectors.mlflow import CHAMPION, Registry, RegistryFailed, Version
from spinney.house.patients import PatientAccess
from spinney.rows.cohort import Cohort
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

PINNED = "champion"


def incumbent_of(
    registry: Registry,
    patients: PatientAccess,
    study: Study,
    site: str,
    memory: MutableMapping[str, Any],
    cohort: CohortRef,
) -> Incumbent | None:
    """The champion when the round began, also where a restart finds that it has been replaced since."""
    version = _pinned(registry, study, memory)
    if version is None:
        return None
    model = registry.model(version)
    own = np.flatnonzero(np.asarray(model.owners_) == site)
    trees = [model.forest_.digests[place] for place in own]
    unseen = patients.unseen_by(trees, cohort)
    return Incumbent(str(version.number), model, own, unseen, _promise(registry, version, study))


def after_the_round(
    registry: Registry, patients: PatientAccess, study: Study, round_: int, memory: MutableMapping[str, Any],
    cohort: CohortRef, rows: Cohort,
) -> None:  # fmt: skip
    """Remember whom tonight's own trees have seen, and forget what no model needs any more."""
    patients.remember_grown(round_, memory, rows, cohort)
    with suppress(RegistryFailed):  # then another night forgets
        patients.forget_grown({one.round for one in registry.versions(study.name) if one.aliases})


def _pinned(registry: Registry, study: Study, memory: MutableMapping[str, Any]) -> Version | None:
    if PINNED not in memory:
        champion = registry.find(study.name, CHAMPION)
        memory[PINNED] = "" if champion is None else str(champion.number)
    return registry.find(study.name, memory[PINNED]) if memory[PINNED] else None


def _promise(registry: Registry, version: Version, study: Study) -> float | None:
    """What it reached when it was chosen; nothing where that was by another study or before a withdrawal."""
    if version.said("study_digest") != study.digest or version.said("parent"):
        return None
    choice = registry.evidence(version)["choice"]
    reached: float | None = choice["cross_validated"].get(choice["model"])
    return reached
