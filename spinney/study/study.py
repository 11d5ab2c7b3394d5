"""The study: what all sites sign. Its digest is in every message."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from spinney.base import FileName
from spinney.errors import PermitExpired
from spinney.plugins import ALGORITHMS
from spinney.study.codes import CodeSets, Pinned, code_set_mistakes
from spinney.study.definition import RESERVED_COLUMNS, EventFeature, Events
from spinney.study.fitting import StudyCohort
from spinney.study.settings import (
    Absent,
    Choice,
    Feature,
    ForestSettings,
    Label,
    Permit,
    Privacy,
    Schedule,
    Settings,
    Split,
)

EPOCH_NIGHTS = 7
LENT_LEAF = 20
MOST_COLUMNS = 32_767  # a tree names a column with 15 bits
CodesOf = Callable[[str, Events], tuple[str, ...]]
AnyAlgorithm: Any = Annotated[reduce(or_, (one.settings for one in ALGORITHMS.values())), Field(discriminator="name")]


class Study(Settings):
    """One clinical question, asked in the same words at every site."""

    name: FileName = Field(description="Short name of the study; part of every message's address.")
    version: int = Field(1, ge=1, description="Raised by whoever changes the study.")
    description: str = Field("", description="The clinical question in a sentence or two.")
    purpose: str = Field("", max_length=2000, description="What the model is for; told in data-protection documents.")
    legal_basis: str = Field(
        "",
        max_length=2000,
        description="On what grounds patients' data may be used, such as GDPR Art. 6(1)(e) with Art. 9(2)(j).",
    )
    permit: Permit | None = Field(
        None, description="The permit under which all sites work. When it ends, rounds stop and cohorts are deleted."
    )
    features: tuple[Feature, ...] = Field(
        min_length=1, max_length=5000, description="The variables that trees may ask."
    )
    label: Label = Field(description="The outcome to predict.")
    cohort: StudyCohort = Field(None, description="Population, index event and eligibility; empty: finished tables.")
    code_sets: CodeSets = Field({}, description="Sets of codes from files, by the name that `codes` has behind an @.")
    consent: Literal["presumed", "required"] = Field(
        "presumed",
        description="presumed: all patients but those who object where a site keeps that. required: only those who "
        "agree, as a site's `opt_out` says.",
    )
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
    pinned: Pinned = Field(
        {}, description="What the code sets mean, for every site; written by `spinney study pin`, not by hand."
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [*(feature.name for feature in self.features), self.label.name]
        times = Counter(name.lower() for name in names)  # databases can't tell Age from age
        if twice := [name for name in dict.fromkeys(names) if times[name.lower()] > 1]:
            raise ValueError(f"used more than once as a feature or label: {', '.join(twice)}")
        if taken := sorted(name for name in names if name.lower() in RESERVED_COLUMNS):
            raise ValueError(f"{', '.join(taken)} is a column of every cohort; give the feature or label another name")
        called: tuple[Feature | Label, ...] = (*self.features, self.label)
        theirs = {one.column.strip().lower(): one.name for one in called if one.column}
        if mixed := [name for name in names if theirs.get(name.lower(), name) != name]:
            raise ValueError(
                f"{', '.join(mixed)} is the name of one thing and the column of another; rename one of them"
            )
        if self.imputation == "forward-fill-then-median" and self.cohort is None:
            raise ValueError("forward-fill-then-median needs the study's `cohort`; finished tables can't be filled so")
        columns = sum(len(feature.categories or (1,)) for feature in self.features)
        if columns > MOST_COLUMNS:
            raise ValueError(f"features and categories make {columns} columns; a study takes {MOST_COLUMNS}")
        return self

    @model_validator(mode="after")
    def _suits_its_algorithm(self) -> Self:
        unsuited = getattr(self.algorithm, "unsuited", None)  # an algorithm that asks something of the rest has it
        if unsuited is not None and (words := unsuited(self)):
            raise ValueError(words)
        return self

    @model_validator(mode="after")
    def _sets_are_pinned(self) -> Self:
        used = [code for _, events in self.choices for code in events.codes]
        if self.cohort is not None:
            used += self.cohort.index.discharged_to
            used += [code for group in self.cohort.eligible.member_of for code in group.codes]
        if mistakes := code_set_mistakes(self.code_sets, self.pinned, used):
            raise ValueError("; ".join(mistakes))
        return self

    @property
    def choices(self) -> tuple[tuple[str, Events], ...]:
        """What asks for events, and for which: features first, then the population, then the label."""
        found: list[tuple[str, Events]] = []

        def note(by: str, events: Events) -> tuple[str, ...]:
            found.append((by, events))
            return events.codes

        self.with_codes(note)
        return tuple(found)

    def with_codes(self, codes_of: CodesOf) -> Study:
        """A copy whose choices of events have other codes. `codes_of` is told what asks for events, and for which."""
        chosen = partial(_with_codes, codes_of)
        changes: dict[str, Any] = {"features": tuple(_with_source(one, chosen) for one in self.features)}
        if self.cohort is not None:
            changes["cohort"] = self.cohort.with_events(chosen)
        source = self.label.source
        if source is not None and source.events is not None:
            outcome = source.model_copy(update={"events": chosen(self.label.name, source.events)})
            changes["label"] = self.label.model_copy(update={"source": outcome})
        return self.model_copy(update=changes)

    @property
    def lent_leaf(self) -> int:
        """Fewest distinct patients in a leaf that is lent: never fewer than in one that stays at home."""
        published = bool(getattr(self.algorithm, "published", False))
        fewest = self.privacy.lent_leaf or (self.privacy.smallest_leaf if published else LENT_LEAF)
        return max(fewest, self.privacy.smallest_leaf)

    @property
    def epoch_nights(self) -> int:
        """How many nights an epoch has."""
        return self.privacy.epoch_nights or (1 if self.published else EPOCH_NIGHTS)

    @property
    def published(self) -> bool:
        """Whether the algorithm is run as published."""
        return bool(getattr(self.algorithm, "published", False))

    @property
    def taus(self) -> tuple[float, ...]:
        """Values over which the rounding of weights moves no tree."""
        return tuple(getattr(self.algorithm, "strict", ()))

    @property
    def absent(self) -> Absent:
        """What a tree does at a site that lacks a feature which it asks."""
        return self.forest.absent or ("abstain" if self.published else "missing")

    def require_permit(self, now: datetime) -> None:
        """PermitExpired if the study has a permit, and its last day is over."""
        if self.permit is not None and self.permit.is_over(now):
            raise PermitExpired(
                f"the permit {self.permit.reference} of {self.name} ended on {self.permit.expires}: no rounds, and "
                "sites delete their cohorts. With a new permit: write it into study.yaml, raise `version`, and approve"
            )

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


def _with_codes(codes_of: CodesOf, by: str, events: Events) -> Events:
    codes = codes_of(by, events)
    return events if codes is events.codes else events.model_copy(update={"codes": codes})  # there may be thousands


def _with_source(feature: Feature, chosen: Callable[[str, Events], Events]) -> Feature:
    if not isinstance(feature.source, EventFeature):
        return feature
    source = chosen(feature.name, feature.source)
    return feature if source is feature.source else feature.model_copy(update={"source": source})
