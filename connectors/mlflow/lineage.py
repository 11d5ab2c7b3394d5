"""Where a version comes from: enough to go back from a prediction to round, study, cohort, trees and their houses."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from spinney.base import Name, Settings
from spinney.study.study import Study

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest

PREFIX = "spinney."
LONGEST_TAG = 4000  # MLflow takes 5000
FULL = "see lineage.json"


class Lineage(Settings):
    """Digests and counts; nothing in it is about a patient."""

    study: Name
    study_digest: str
    site: Name = Field(description="The house that keeps the model.")
    round: int = Field(ge=0)
    cohort_digest: str = Field("", description="Of the rows that it was chosen on.")
    audit_head: str = Field("", description="Hash of the last line of the audit log when it was registered.")
    model_digest: str
    trees: dict[str, int] = Field(description="Trees by house.")
    weights: dict[str, float] = Field(description="Share of the vote by house.")
    without: tuple[str, ...] = Field((), description="Houses that have withdrawn their trees from it.")
    silenced: int = Field(0, ge=0, description="Own trees that vote no more because a patient who grew them objects.")
    regrown: int = Field(0, ge=0, description="Own trees that were grown in their place, and were lent to nobody.")
    parent: str = Field("", description="Digest of the model that it was made of, where trees are gone from it.")

    @property
    def key(self) -> str:
        """What this model is in the registry: the same key is never registered twice."""
        gone = f"{'+'.join(self.without)}" + (f"/silenced/{self.silenced}" if self.silenced else "")
        made = f"{self.parent}/without/{gone}" if self.parent else f"round/{self.round}"
        return f"{self.study_digest}/{made}"

    def tags(self) -> dict[str, str]:
        """As MLflow shows them beside a version."""
        plain = {**self.model_dump(mode="json", exclude_defaults=True), "key": self.key}
        words = {
            name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for name, value in plain.items()
        }
        return {f"{PREFIX}{name}": word if len(word) <= LONGEST_TAG else FULL for name, word in words.items()}


def lineage_of(
    study: Study, site: str, model: FederatedForest, round_: int, cohort_digest: str = "", audit_head: str = ""
) -> Lineage:
    """The lineage of a round's model at a site."""
    return Lineage(
        study=study.name,
        study_digest=study.digest,
        site=site,
        round=round_,
        cohort_digest=cohort_digest,
        audit_head=audit_head,
        model_digest=model.digest,
        trees=trees_by_house(model),
        weights=shares_by_house(model),
    )


def without_house(lineage: Lineage, site: str, model: FederatedForest) -> Lineage:
    """The lineage of what is left when a house has withdrawn."""
    changes = {
        "without": (*lineage.without, site),
        "parent": lineage.model_digest,
        "model_digest": model.digest,
        "trees": trees_by_house(model),
        "weights": shares_by_house(model),
    }
    return lineage.model_copy(update=changes)


def silenced(lineage: Lineage, trees: int, regrown: int, model: FederatedForest) -> Lineage:
    """The lineage of what is left when some own trees vote no more, and others have been grown."""
    changes = {
        "silenced": lineage.silenced + trees,
        "regrown": lineage.regrown + regrown,
        "parent": lineage.model_digest,
        "model_digest": model.digest,
        "trees": trees_by_house(model),
        "weights": shares_by_house(model),
    }
    return lineage.model_copy(update=changes)


def trees_by_house(model: FederatedForest) -> dict[str, int]:
    """How many trees each house has in a model."""
    return dict(sorted(Counter(model.owners_).items()))


def shares_by_house(model: FederatedForest) -> dict[str, float]:
    """Each house's share of the vote."""
    owners, total = np.asarray(model.owners_), model.weights_.sum()
    return {site: round(float(model.weights_[owners == site].sum() / total), 4) for site in sorted({*model.owners_})}
