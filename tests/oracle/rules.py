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
HOME, WAYS = "way|home", ("way|home", "way|hosp", "way|snf", "other|home")
SPANS = ("12h", "1d", "2d", "30d", "365d")


def with_rules(study: Study, chance: random.Random) -> Study:
    """The same study with a population that has one rule or two."""
    words = study.model_dump(mode="json")
    cohort = words["cohort"]
    if cohort["index"]["kind"] == "Encounter" and chance.random() < 0.5:
        cohort["index"] = {"kind": "Encounter", "at": cohort["index"]["at"]}
    for rule in chance.sample(RULES, chance.choice((1, 2, 2))):
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


def _merged(chance: random.Random, cohort: Words) -> None:
    cohort["index"]["merge_within"] = chance.choice(("1h", "12h", "24h", "30d"))


def _part(chance: random.Random, cohort: Words) -> None:
    if cohort["index"]["kind"] == "Encounter":
        of = ({"classes": ["IMP"]}, {"classes": ["IMP"], "statuses": ["finished"]}, {"codes": ["sct|ward"]}, "nothing")
        part, at = chance.choice((*of[:3], *of)), chance.choice(("start", "end"))
        if cohort["index"].get("discharged_to") or cohort["eligible"]["minimum_stay"]:  # then a start may be too early
            at = cohort["index"]["at"]
        cohort["index"] |= {"part_of": part, "at": at}
        cohort["index"].pop("classes", None)


def _left(chance: random.Random, cohort: Words) -> None:
    if cohort["index"]["kind"] == "Encounter" and cohort["index"]["at"] == "end":
        ways = ([HOME], ["way|h*"], ["*|home", "way|snf"], ["way|*"])
        cohort["index"]["discharged_to"] = chance.choice(ways)


def _every(chance: random.Random, cohort: Words) -> None:
    if cohort["index"]["at"] == "start":
        cohort["index"] |= {"every": chance.choice(("5h", "24h")), "up_to": chance.choice(("24h", "48h", "30d"))}


RULES = (_merged, _part, _left, _every, _first, _stay, _observed, _history("before"), _history("none_before"))


def case_of(seed: int) -> FhirCase | RowCase:
    """Resources or rows, and a study with rules."""
    chance = random.Random(seed)
    made = Records(seed).case() if seed % 2 else RowRecords(seed).row_case()
    study = with_rules(made.study, chance)
    if isinstance(made, FhirCase):
        return replace(made, study=study, resources=_related(made.resources, chance))
    return replace(made, study=study, tables=made.tables | {"Encounter": _joined(made.tables["Encounter"], chance)})


def _related(resources: list[Words], chance: random.Random) -> list[Words]:
    """The same resources, in which encounters are part of others and patients leave for somewhere."""
    stays = {one["id"]: one["subject"]["reference"] for one in resources if one["resourceType"] == "Encounter"}
    related: dict[str, Words] = {}
    for name, whose in sorted(stays.items()):
        more = related.setdefault(name, {})
        if chance.random() < 0.6:
            about = [other for other, of in sorted(stays.items()) if of.rsplit("/", 1)[-1] == whose.rsplit("/", 1)[-1]]
            more["partOf"] = {"reference": f"Encounter/{chance.choice(about)}"}
        if chance.random() < 0.5:
            ways = [dict(zip(("system", "code"), way.split("|"), strict=True)) for way in chance.sample(WAYS, 2)]
            left = {"dischargeDisposition": {"coding": ways[: chance.randint(1, 2)]}}
            more[chance.choice(("hospitalization", "admission"))] = left
    return [one | related[one["id"]] if one["resourceType"] == "Encounter" else one for one in resources]


def _joined(visits: list[Words], chance: random.Random) -> list[Words]:
    """The same for rows: all rows of a visit are part of the same, and leave for the same places."""
    names = {row["event"]: row["patient"] for row in visits if "event" in row}
    related: dict[str, Words] = {}
    for name, whose in sorted(names.items()):
        about = [other for other, of in sorted(names.items()) if of == whose]
        parent = {"parent": chance.choice(about)} if chance.random() < 0.6 else {}
        left = {"discharge": chance.choice(WAYS)} if chance.random() < 0.5 else {}
        related[name] = parent | left
    return [row | related.get(row.get("event", ""), {}) for row in visits]


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


def _index(name: str, value: Any) -> Plant:
    """A fault that is the same as another setting of the index event."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = reference.table

        def other(study: Study, *more: Any) -> reference.Expected:
            index = study.cohort.index.model_copy(update={name: value})
            cohort = study.cohort.model_copy(update={"index": index})
            return whole(study.model_copy(update={"cohort": cohort}), *more)

        patch.setattr(reference, "table", other)

    return plant


FAULTS |= {
    f"{name} is not looked at": _index(name, value)
    for name, value in {
        "part_of": None,
        "discharged_to": (),
        "merge_within": None,
        "every": None,
        "up_to": "30d",
    }.items()
}


@fault
def an_encounter_is_part_of_a_stay_before_that_has_begun(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(population, "_was_part", lambda *_: True)


@fault
def an_encounter_is_part_of_what_it_names_and_of_no_more(patch: pytest.MonkeyPatch) -> None:
    whole = population._above
    patch.setattr(population, "_above", lambda *asked: whole(*asked)[:1])


@fault
def index_times_go_on_after_the_end(patch: pytest.MonkeyPatch) -> None:
    whole = population._index_times
    patch.setattr(population, "_index_times", lambda cohort, one, site: whole(cohort, replace(one, ended=None), site))


@fault
def what_is_merged_is_another_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(population.Opening, "holds", lambda opening, event: opening.whole[0] is event)


@fault
def the_first_event_of_an_episode_is_its_last(patch: pytest.MonkeyPatch) -> None:
    whole = population._episodes

    def turned(chosen: Any, gap: Any) -> Any:
        return [[replace(one, left_to=some[0].left_to) for one in some] for some in whole(chosen, gap)]

    patch.setattr(population, "_episodes", turned)


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
