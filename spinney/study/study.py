"""The study: what all sites sign. Its digest is in every message."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from spinney.base import FileName
from spinney.plugins import ALGORITHMS
from spinney.study.definition import RESERVED_COLUMNS
from spinney.study.fitting import StudyCohort
from spinney.study.settings import Choice, Feature, ForestSettings, Label, Privacy, Schedule, Settings, Split

MOST_COLUMNS = 32_767  # a tree names a column with 15 bits
AnyAlgorithm: Any = Annotated[reduce(or_, (one.settings for one in ALGORITHMS.values())), Field(discriminator="name")]


class Study(Settings):
    """One clinical question, asked in the same words at every site."""

    name: FileName = Field(description="Short name of the study; part of every message's address.")
    version: int = Field(1, ge=1, description="Raised by whoever changes the study.")
    description: str = Field("", description="The clinical question in a sentence or two.")
    features: tuple[Feature, ...] = Field(
        min_length=1, max_length=5000, description="The variables that trees may ask."
    )
    label: Label = Field(description="The outcome to predict.")
    cohort: StudyCohort = Field(None, description="Population, index event and eligibility; empty: finished tables.")
    imputation: Literal["none", "forward-fill-then-median", "federated-means"] = Field(
        "none",
        description="none: missing is left to the forest. Else the patient's earlier row, then the site's median; or "
        "the mean (the most frequent category) over all sites, by secure sums.",
    )
    forest: ForestSettings = Field(ForestSettings(), description="How every site grows its trees.")
    algorithm: AnyAlgorithm = Field(ALGORITHMS["bofrf"].settings(), description="How the sites help each other.")
    privacy: Privacy = Field(Privacy(), description="What may leave a hospital.")
    split: Split = Field(Split(), description="Training, validation and test.")
    choice: Choice = Field(Choice(), description="How a site chooses its model.")
    schedule: Schedule = Field(Schedule(), description="When rounds are, and how long anybody waits.")
    quorum: int = Field(2, ge=2, description="With fewer sites the round is void and every site keeps what it has.")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [*(feature.name for feature in self.features), self.label.name]
        times = Counter(name.lower() for name in names)  # databases can't tell Age from age
        if twice := [name for name in dict.fromkeys(names) if times[name.lower()] > 1]:
            raise ValueError(f"used more than once as a feature or label: {', '.join(twice)}")
        if taken := sorted(name for name in names if name.lower() in RESERVED_COLUMNS):
            raise ValueError(f"{', '.join(taken)} is a column of every cohort; give the feature or label another name")
        if self.imputation == "forward-fill-then-median" and self.cohort is None:
            raise ValueError("forward-fill-then-median needs the study's `cohort`; finished tables can't be filled so")
        columns = sum(len(feature.categories or (1,)) for feature in self.features)
        if columns > MOST_COLUMNS:
            raise ValueError(f"features and categories make {columns} columns; a study takes {MOST_COLUMNS}")
        return self

    @property
    def digest(self) -> str:
        """Identifies the study in every message: the same words, the same digest."""
        words = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(words.encode()).hexdigest()

    def with_settings(self, **changes: dict[str, Any]) -> Study:
        """A copy with some settings of some sections replaced, checked again."""
        data = self.model_dump(mode="json")
        for section, values in changes.items():
            data[section] = {**data[section], **values}
        return Study.model_validate(data)
