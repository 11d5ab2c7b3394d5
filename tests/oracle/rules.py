"""Studies whose population has rules, over the same nasty records, and faults to plant in how the rules are applied."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from spinney.study.study import Study
from tests.oracle import population, reference
from tests.oracle.events import TICK, When
from tests.oracle.faults import Plant
from tests.oracle.records import FhirCase, Records
from tests.oracle.row_records import RowCase, RowRecords
from tests.oracle.studies import ACTS, DRUGS, ILLNESSES

Words = dict[str, Any]
HISTORY: tuple[Words, ...] = (
    {"kind": "Condition", "codes": [ILLNESSES[0]]},
    {"kind": "Condition"},
    {"kind": "MedicationRequest", "codes": list(DRUGS)},
    {"kind": "Procedure", "codes": [ACTS[0]]},
    {"kind": "Encounter", "classes": ["EMER", "AMB"]},
    {"kind": "Encounter", "classes": ["IMP"]},
    {"kind": "Observation", "statuses": ["final"]},
)
SPANS = ("12h", "1d", "2d", "30d", "365d")


def with_rules(study: Study, chance: random.Random) -> Study:
    """The same study with a population that has one rule or two."""
    words = study.model_dump(mode="json")
    cohort = words["cohort"]
    if cohort["index"]["kind"] == "Encounter" and chance.random() < 0.5:
        cohort["index"] = {"kind": "Encounter", "at": cohort["index"]["at"]}
    for rule in chance.sample(RULES, chance.choice((1, 1, 2))):
        rule(chance, cohort)
    return Study.model_validate(words)


def _first(chance: random.Random, cohort: Words) -> None:
    cohort["eligible"]["only"] = chance.choice(("first", "first-eligible"))


def _stay(chance: random.Random, cohort: Words) -> None:
    if cohort["index"]["kind"] == "Encounter":
        long = chance.choice(("1h", "5h", "1d", "2d"))
        cohort["eligible"]["minimum_stay"] = long
        if cohort["index"]["at"] == "start":
            cohort["offset"] = chance.choice((long, "48h"))


def _observed(chance: random.Random, cohort: Words) -> None:
    cohort["eligible"]["observed"] = {"at_least": chance.choice(SPANS)}


def _history(name: str) -> Callable[[random.Random, Words], None]:
    def rule(chance: random.Random, cohort: Words) -> None:
        one = {**chance.choice(HISTORY), "name": name}
        if chance.random() < 0.6:
            one["within"] = chance.choice(SPANS)
        cohort["eligible"].setdefault(name, []).append(one)

    return rule


RULES = (_first, _stay, _observed, _history("before"), _history("none_before"))


def case_of(seed: int) -> FhirCase | RowCase:
    """Resources or rows, and a study with rules."""
    chance = random.Random(seed)
    made = Records(seed).case() if seed % 2 else RowRecords(seed).row_case()
    return replace(made, study=with_rules(made.study, chance))


FAULTS: dict[str, Plant] = {}


def fault(plant: Plant) -> Plant:
    FAULTS[plant.__name__.replace("_", " ")] = plant
    return plant


def _rule(name: str, value: Any) -> Plant:
    """A fault that is the same as another setting of the rules."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = reference.table

        def other(study: Study, *more: Any) -> reference.Expected:
            rules = study.cohort.eligible.model_copy(update={name: value})
            cohort = study.cohort.model_copy(update={"eligible": rules})
            return whole(study.model_copy(update={"cohort": cohort}), *more)

        patch.setattr(reference, "table", other)

    return plant


FAULTS |= {
    f"{name} is not looked at": _rule(name, value)
    for name, value in {
        "only": "all",
        "minimum_stay": None,
        "observed": None,
        "before": (),
        "none_before": (),
    }.items()
}


@fault
def the_index_event_is_its_own_history(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(population.Opening, "holds", lambda *_: False)
    whole = population.broken
    patch.setattr(
        population,
        "broken",
        lambda cohort, opening, *more: whole(cohort, replace(opening, at=opening.at + TICK), *more),
    )


@fault
def what_is_known_later_is_history(patch: pytest.MonkeyPatch) -> None:
    whole = population.broken
    patch.setattr(
        population,
        "broken",
        lambda cohort, opening, own, prediction, meant: whole(
            cohort, opening, [replace(one, known=one.time.first) for one in own], prediction, meant
        ),
    )


@fault
def history_ends_at_prediction_time(patch: pytest.MonkeyPatch) -> None:
    whole = population.broken
    patch.setattr(
        population,
        "broken",
        lambda cohort, opening, own, prediction, meant: whole(
            cohort, replace(opening, at=prediction), own, prediction, meant
        ),
    )


@fault
def a_day_is_a_whole_stay(patch: pytest.MonkeyPatch) -> None:
    whole = population._lasted

    def lasted(opening: population.Opening, prediction: Any) -> timedelta:
        return whole(replace(opening, began=When(opening.began.first, opening.began.first)), prediction)

    patch.setattr(population, "_lasted", lasted)


@fault
def the_last_is_the_first(patch: pytest.MonkeyPatch) -> None:
    whole = population.openings
    patch.setattr(population, "openings", lambda *asked: whole(*asked)[::-1])
