"""Whether a clinical definition fits the features and the label of its study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from spinney.study.definition import COUNTING, CohortDefinition, EventFeature, PatientFeature
from spinney.study.settings import Feature, Label


def _fits_the_study(cohort: CohortDefinition | None, info: ValidationInfo) -> CohortDefinition | None:
    features, label = info.data.get("features"), info.data.get("label")
    if cohort is not None and features is not None and label is not None:
        mistakes = list(mistakes_in(cohort, features, label))
        if mistakes:
            raise ValueError("; ".join(mistakes))
    return cohort


StudyCohort = Annotated[CohortDefinition | None, AfterValidator(_fits_the_study)]


def mistakes_in(cohort: CohortDefinition, features: Sequence[Feature], label: Label) -> Iterator[str]:
    """What does not fit between the definition, the features and the label."""
    names = {feature.name for feature in features}
    if label.source is None:
        yield f"label {label.name} needs a source, such as {{outcome: death, horizon: 8h}}"
    for feature in features:
        yield from _mistakes_in_feature(feature)
    with_values = {feature.name for feature in features if isinstance(feature.source, EventFeature)}
    for name in cohort.eligible.values:
        if name not in with_values:
            yield f"eligible.values: {name} is no feature from events"
    compared = {name for rule in cohort.quality.rules for name in (rule.column, rule.than) if isinstance(name, str)}
    for name in sorted((compared | set(cohort.quality.largest_missing)) - names):
        yield f"quality: {name} is no feature"
    words = {feature.name for feature in features if feature.kind == "categorical"}
    for name in sorted(compared & words):
        yield f"quality: {name} is categorical, and rules compare numbers"


def _mistakes_in_feature(feature: Feature) -> Iterator[str]:
    source = feature.source
    if source is None:
        yield f"feature {feature.name} needs a source, such as {{patient: age}} or {{kind, codes, statistic, window}}"
    elif isinstance(source, PatientFeature):
        wanted = "continuous" if source.patient == "age" else "categorical"
        if feature.kind != wanted:
            yield f"feature {feature.name}: {source.patient} is {wanted}"
    else:
        is_text = source.value == "text" and source.statistic not in COUNTING
        if is_text != (feature.kind == "categorical"):
            yield f"feature {feature.name}: a {feature.kind} feature can't be the {source.statistic} {source.value}"
        if unknown := sorted(set(source.meaning.values()) - set(feature.categories or ())):
            yield f"feature {feature.name}: meaning leads to {', '.join(unknown)}, which is no category"
