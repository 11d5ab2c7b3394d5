"""The clinical definition in a study: who is in the cohort, when is predicted, and how values are read from events.

Prediction time is the index time plus the offset. A feature sees what happened in its window before prediction time and
was recorded by then; the label is what happens within the horizon after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from spinney.base import Name, Settings, Share
from spinney.study.codes import Code

Kind = Literal[
    "AllergyIntolerance",
    "Condition",
    "Coverage",
    "DiagnosticReport",
    "Encounter",
    "Immunization",
    "MedicationAdministration",
    "MedicationDispense",
    "MedicationRequest",
    "MedicationStatement",
    "Observation",
    "Procedure",
]
Statistic = Literal[
    "last",
    "first",
    "mean",
    "median",
    "min",
    "max",
    "slope",
    "std",
    "delta",
    "p10",
    "p90",
    "count",
    "exists",
    "days-since",
]
LASTING = "Coverage"
"""The kind that says how long a patient is in sight, and nothing of what happened or until when there are data."""
COUNTING = frozenset({"count", "exists", "days-since"})
"""Statistics that ask only whether and when something happened, so an event without a value counts, too."""
RESERVED_COLUMNS = frozenset({"patient", "index_time", "ripe", "reason"})
"""Columns of every cohort, also while it is made; no feature and no label can be called so."""

_UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DURATION = re.compile(r"^(\d{1,6})(min|h|d|w)$")


def length(duration: str) -> timedelta:
    """A duration such as 8h, 30d or 52w as a time span."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError(f"{duration!r} is no duration; write a whole number and min, h, d or w, such as 8h or 30d")
    return int(match[1]) * _UNITS[match[2]]


def _checked_duration(duration: str) -> str:
    length(duration)
    return duration


Duration = Annotated[str, AfterValidator(_checked_duration)]
Answer = Annotated[str, Field(min_length=1, max_length=500)]


class Events(Settings):
    """Which coded events are meant."""

    kind: Kind = Field(description="Resource type, such as Observation, Condition or MedicationRequest.")
    codes: tuple[Code, ...] = Field(
        (),
        description="Any of these: system|code, system|I50* for all that begin so, *|I50.9 in any system, or @name of "
        "a code set; empty: all codes.",
    )
    classes: tuple[str, ...] = Field((), description="Any of these encounter classes, such as IMP; empty: all.")
    statuses: tuple[str, ...] = Field((), description="Any of these statuses, such as finished; empty: all.")
    answers: tuple[Answer, ...] = Field(
        (),
        description="Only observations with one of these coded or written values: system|code, or a word in any "
        "system, such as positive; empty: all.",
    )

    @model_validator(mode="after")
    def _observations_have_answers(self) -> Self:
        if self.answers and self.kind != "Observation":
            raise ValueError("answers belong to kind: Observation")
        return self


class Stay(Events):
    """Which encounters are meant."""

    kind: Literal["Encounter"] = Field("Encounter", description="Always Encounter.")


class IndexEvent(Events):
    """What opens a row: each of these events is one."""

    at: Literal["start", "end"] = Field("start", description="Index time is when the event starts, or when it ends.")
    part_of: Stay | Literal["nothing"] | None = Field(
        None,
        description="Only encounters that are part (partOf) of such an encounter, however deep; nothing: only those "
        "that are part of no other.",
    )
    discharged_to: tuple[Code, ...] = Field(
        (), description="Only encounters that ended so: codes of the discharge disposition; empty: all."
    )
    merge_within: Duration | None = Field(
        None, description="Events with less than so much time between them are one, such as 24h for a transfer."
    )
    every: Duration | None = Field(
        None, description="Index times come again and again while the event lasts, such as every 1h of a stay."
    )
    up_to: Duration = Field("30d", description="The last index time of `every` is at most so long after the start.")

    @model_validator(mode="after")
    def _rules_fit_the_kind(self) -> Self:
        if self.kind != "Encounter" and (self.part_of or self.discharged_to):
            raise ValueError("part_of and discharged_to belong to kind: Encounter")
        if self.discharged_to and self.at == "start":
            raise ValueError("discharged_to is not known at the start; say at: end")
        if self.every and self.at == "end":
            raise ValueError("every: index times come while the event lasts; say at: start")
        if self.every and not length(self.every):
            raise ValueError("every: 0 is no time; say 1h, for instance")
        return self


class History(Events):
    """What a patient's record holds before index time, as far as it was known at prediction time."""

    name: str = Field(min_length=1, max_length=80, description="What the report calls it, such as heart failure.")
    within: Duration | None = Field(
        None, description="Only what began at most so long before index time, such as 365d; empty: ever."
    )


class Observed(Settings):
    """How long a patient must have been in sight, so that an empty record means something."""

    at_least: Duration = Field(
        description="One of the events began so long before index time, or longer, such as 365d."
    )
    by: Events = Field(
        Events(kind="Encounter"),
        description="Events that show it; empty: any encounter. A Coverage (OMOP's observation period) has to last "
        "at index time, too.",
    )


def _checked_identifier(written: str) -> str:
    system, _, value = written.partition("|")
    if not (system and value):
        raise ValueError(
            f"{written!r} is no identifier; write system|value, such as https://registry.example.org/groups|hf"
        )
    return written


class Membership(Settings):
    """A group of patients that the sites keep, as a FHIR Group or likewise; one of those that are named is enough."""

    name: str = Field(min_length=1, max_length=80, description="What the report calls it, such as the registry.")
    identifiers: tuple[Annotated[str, AfterValidator(_checked_identifier)], ...] = Field(
        (), description="Group.identifier as system|value: the same at every site, which no local id is."
    )
    codes: tuple[Code, ...] = Field((), description="Group.code, written as codes of events are.")

    @model_validator(mode="after")
    def _names_a_group(self) -> Self:
        if not self.identifiers and not self.codes:
            raise ValueError(f"member_of: {self.name} needs identifiers or codes of a group")
        return self


class EventFeature(Events):
    """A feature from events in a window before prediction time."""

    statistic: Statistic = Field(description="What is computed from the values in the window; slope is per day.")
    window: Duration | None = Field(None, description="How far back from prediction time, such as 365d; empty: all.")
    value: Literal["number", "text", "days"] = Field(
        "number", description="The number, the coded or written value, or how many days the event lasted."
    )
    unit: str | None = Field(None, description="UCUM unit of the values before the statistic; empty: the feature's.")
    molar_mass: float | None = Field(
        None, gt=0, description="In g/mol; allows conversion between amount and mass, such as mmol/L to mg/dL."
    )
    censored: Literal["exclude", "bound"] = Field(
        "exclude", description="What < 5, >= 300 and the like are worth: no value, or the number that stands there."
    )
    meaning: dict[str, str] = Field(
        {}, description="Category by value, such as http://snomed.info/sct|266919005: never."
    )

    @model_validator(mode="after")
    def _values_fit_the_statistic(self) -> Self:
        if self.value == "text" and self.statistic not in COUNTING | {"last", "first"}:
            raise ValueError(f"text has no {self.statistic}; use last, first, count, exists or days-since")
        if self.value != "number" and (self.unit or self.molar_mass or self.censored != "exclude"):
            raise ValueError("unit, molar_mass and censored belong to value: number")
        if self.value != "text" and self.meaning:
            raise ValueError("meaning belongs to value: text")
        if self.answers and self.statistic not in COUNTING:
            raise ValueError(f"answers say what counts, and {self.statistic} counts nothing; use exists or count")
        return self


class PatientFeature(Settings):
    """A feature of the patient."""

    patient: Literal["age", "sex"] = Field(description="Age in whole years at index time, or administrative sex.")


def _feature_tag(value: Any) -> str:
    is_patient = isinstance(value, PatientFeature) or (isinstance(value, Mapping) and "patient" in value)
    return "patient" if is_patient else "event"


FeatureSource = Annotated[
    Annotated[EventFeature, Tag("event")] | Annotated[PatientFeature, Tag("patient")], Discriminator(_feature_tag)
]


class LabelSource(Settings):
    """What makes a row's label yes: something that happens after prediction time, within the horizon."""

    outcome: Literal["index-event", "death", "event"] = Field(
        description="Another event like the index event begins (readmission), the patient dies, or one of `events`."
    )
    horizon: Duration = Field(description="How long after prediction time it may happen, such as 30d or 8h.")
    events: Events | None = Field(None, description="The events of outcome: event.")
    competing: Literal["exclude", "negative"] = Field(
        "exclude",
        description="Who dies within the index event or the horizon, before the outcome can happen: left out, or a no.",
    )

    @model_validator(mode="after")
    def _events_where_needed(self) -> Self:
        if (self.outcome == "event") != (self.events is not None):
            raise ValueError("outcome: event needs `events`, the other outcomes have none")
        if self.outcome == "death" and self.competing != "exclude":
            raise ValueError("a death competes with other outcomes; outcome: death has no `competing`")
        return self


class Eligibility(Settings):
    """Which index events become rows."""

    only: Literal["all", "first", "first-eligible"] = Field(
        "all",
        description="all index events of a patient; the first, whether or not the other rules keep it; or the first "
        "that they keep.",
    )
    age: tuple[int, int] | None = Field(None, description="Youngest and oldest age in years at index time.")
    minimum_stay: Duration | None = Field(
        None, description="The index event had lasted at least so long by prediction time, such as 24h."
    )
    member_of: tuple[Membership, ...] = Field(
        (), description="Of each of these groups the patient was an active member at prediction time."
    )
    observed: Observed | None = Field(None, description="For how long the patient was in sight before.")
    before: tuple[History, ...] = Field((), description="Each of these must have happened before index time.")
    none_before: tuple[History, ...] = Field(
        (), description="None of these may have happened before index time, as within a washout."
    )
    values: tuple[Name, ...] = Field((), description="Features of which a row needs at least one value each.")


class Rule(Settings):
    """A plausibility rule: a column compared with a number or with another column, where both are known."""

    name: str = Field(description="What the report calls the rule.")
    column: Name = Field(description="A feature.")
    comparison: Literal["<", "<=", ">", ">=", "==", "!="] = Field(description="How it compares.")
    than: float | Name = Field(description="A number or another feature.")
    mostly: float = Field(1.0, gt=0, le=1, description="Share of rows that must keep the rule.")
    severity: Literal["critical", "warning"] = Field(
        "warning", description="critical: the site stays out of the round."
    )


class Quality(Settings):
    """When a table is too poor to take part."""

    largest_quarantine: Share = Field(0.05, description="Largest share of what was read that may be in quarantine.")
    largest_missing: dict[Name, Annotated[float, Field(ge=0, le=1)]] = Field(
        {}, description="Largest share of missing values by feature; a feature that is not named may miss all."
    )
    missing_severity: Literal["critical", "warning"] = Field("warning", description="What more missing values mean.")
    rules: tuple[Rule, ...] = Field((), description="Plausibility rules across columns.")


class CohortDefinition(Settings):
    """Population, index event, eligibility and quality: the same words at every site."""

    index: IndexEvent = Field(description="The events that open a row.")
    offset: Duration = Field("0h", description="Prediction time is this long after index time.")
    since: date | None = Field(None, description="Only index events from this day on.")
    eligible: Eligibility = Field(Eligibility(), description="Which index events become rows.")
    quality: Quality = Field(Quality(), description="When a table is too poor to take part.")

    @model_validator(mode="after")
    def _rules_look_at_what_is_known(self) -> Self:
        stay = self.eligible.minimum_stay
        start = self.index.at == "start" and not self.index.every
        if stay and start and length(self.offset) < length(stay):
            raise ValueError(
                f"minimum_stay: {stay} is not known yet at prediction time; say at: end, or offset: {stay} or more"
            )
        return self

    def with_events(self, chosen: Callable[[str, Events], Events]) -> Self:
        """A copy whose choices of events are others. `chosen` is told what asks for events, and for which."""
        rules, changes = self.eligible, dict[str, Any]()
        for name in ("before", "none_before"):
            changes[name] = tuple(chosen(name, one) for one in getattr(rules, name))
        if rules.observed is not None:
            changes["observed"] = rules.observed.model_copy(update={"by": chosen("observed", rules.observed.by)})
        index = chosen("index event", self.index)
        if isinstance(self.index.part_of, Stay):
            index = index.model_copy(update={"part_of": chosen("part_of", self.index.part_of)})
        return self.model_copy(update={"index": index, "eligible": rules.model_copy(update=changes)})
