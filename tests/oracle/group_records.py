"""Studies that ask who is in a group, nasty groups for them, and faults to plant in how members are found."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from spinney.study.definition import length
from spinney.study.study import Study
from tests.oracle import groups, reference
from tests.oracle.events import Site, When
from tests.oracle.faults import Plant
from tests.oracle.records import FhirCase, Records
from tests.oracle.row_records import MEMBERS, RowCase
from tests.oracle.rules import case_of

Words = dict[str, Any]
REGISTRY, TRIAL = "urn:registry|hf", "urn:trials|7"
KINDS = {REGISTRY: "kind|registry", TRIAL: "kind|trial"}
NAMED: tuple[Words, ...] = (
    {"identifiers": [REGISTRY]},
    {"identifiers": [REGISTRY]},
    {"identifiers": [REGISTRY, TRIAL]},
    {"codes": ["kind|reg*"]},
    {"codes": ["*|trial", "kind|registry"]},
)


def group_case_of(seed: int) -> FhirCase | RowCase:
    """Resources or rows with groups, and a study whose patients are in one or two of them."""
    made, more = case_of(seed), GroupRecords(seed)
    words = made.study.model_dump(mode="json")
    chosen = more.chance.sample(NAMED, more.chance.choice((1, 1, 1, 2)))
    words["cohort"]["eligible"] = {"member_of": [{"name": "registry", **one} for one in chosen]}
    words["cohort"]["index"] |= {"part_of": None, "discharged_to": [], "statuses": []}
    study = Study.model_validate(words)
    if isinstance(made, FhirCase):
        return replace(made, study=study, resources=made.resources + more.groups(made.resources))
    return replace(made, study=study, tables=made.tables | {MEMBERS: more.rows(made.tables)})


class GroupRecords(Records):
    """Draws groups of the patients of a case, around the times of their stays."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chance = random.Random(f"groups {seed}")

    def groups(self, resources: list[Words]) -> list[Words]:
        """Groups of all kinds: good ones, old versions, and such as say nothing of who is in them."""
        stays = [one for one in resources if one["resourceType"] == "Encounter"]
        first = self.group(REGISTRY, stays)
        found = [first, *(self.any_group(stays) for _ in range(self.chance.randint(1, 4)))]
        old = [{**one, "member": one["member"][:1], "active": True} for one in found if self.often(0.3)]
        for one in found:
            one["meta"] = {"lastUpdated": "2023-06-01T00:30:00+02:00"}
        return found + [{**one, "meta": {"lastUpdated": "2023-05-31T22:00:00Z"}} for one in old]

    def any_group(self, stays: list[Words]) -> Words:
        one = self.group(self.chance.choice((REGISTRY, REGISTRY, TRIAL, TRIAL, "urn:other|9")), stays)
        odd = (
            *({"active": False}, {"actual": False}, {"membership": "definitional"}, {"quantity": 40, "member": []}),
            *({"characteristic": [{"exclude": True}]}, {"characteristic": [{"exclude": False}]}, {"active": True}),
            {"member": [*one["member"], {"entity": {"reference": "Group/another"}}]},
        )
        return one | self.chance.choice(odd) if self.often(0.5) else one

    def group(self, called: str, stays: list[Words]) -> Words:
        system, _, value = called.partition("|")
        one: Words = {"resourceType": "Group", "id": self.id("grp"), "type": "person"}
        one |= {"membership": "enumerated"} if self.often(0.3) else {"actual": True}
        one["identifier"] = [{"system": system, "value": value}, {"system": "local", "value": one["id"]}]
        one["code"] = self.concept((KINDS.get(called, "kind|other"),))
        one["member"] = [self.member(stay) for stay in stays for _ in range(self.chance.choice((0, 1, 1, 1, 2)))]
        return one

    def member(self, stay: Words) -> Words:
        """Somebody in a group since about the beginning of a stay."""
        one: Words = {"entity": {"reference": stay["subject"]["reference"]}}
        if self.often(0.05):
            one["entity"] = {"reference": "Practitioner/" + self.id("dr")}
        if self.often(0.85):
            period = stay.get("period") or stay["actualPeriod"]
            one["period"] = self.period(period["start"], period.get("end"))
        return one | ({"inactive": self.often(0.7)} if self.often(0.4) else {})

    def period(self, start: str, end: str | None) -> Words:
        """Around a stay, to the moment or to the day."""
        site = Site(self.timezone)
        first = site.read(start).first
        last = site.read(end).first if end else first
        span = {
            "start": first + timedelta(hours=self.chance.choice((0, 0, -1, 1, -24, 24, -9000))),
            "end": last + timedelta(hours=self.chance.choice((0, 0, -1, 1, 24, 9000))),
        }
        return {name: self.written(moment) for name, moment in span.items() if self.often(0.75)}

    def rows(self, tables: dict[str, list[Words]]) -> list[Words]:
        """The same as rows of a query."""
        found = []
        for row in tables["Encounter"]:
            called = self.chance.choice((REGISTRY, REGISTRY, TRIAL, *KINDS.values(), "urn:other|9", None))
            if row.get("time") and self.often(0.8):
                found.append({"patient": row["patient"], "group": called, **self.period(row["time"], row.get("until"))})
        return found


def _of_members(change: Callable[[groups.Member], groups.Member]) -> Plant:
    """A fault that is the same as other members."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = groups.was_in
        patch.setattr(groups, "was_in", lambda one, at, site: whole(change(one), at, site))

    return plant


FAULTS: dict[str, Plant] = {
    "member_of is not looked at": lambda patch: patch.setattr(groups, "is_in", lambda *_: True),
    "groups that name nobody have members": lambda patch: patch.setattr(groups, "names_members", lambda _: True),
    "members are in a group from ever on": _of_members(lambda one: replace(one, since=None)),
    "members are in a group for ever": _of_members(lambda one: replace(one, till=None, left=False)),
    "inactive is not looked at": _of_members(lambda one: replace(one, left=False)),
    "who is inactive by now never was in it": _of_members(
        lambda one: replace(one, till=None) if one.left and one.till else one
    ),
    "the first day of a member counts from its beginning": _of_members(
        lambda one: replace(one, since=one.since and When(one.since.first, one.since.first))
    ),
    "the last day of a member ends when it begins": _of_members(
        lambda one: replace(one, till=one.till and When(one.till.first, one.till.first))
    ),
}


def fault(plant: Plant) -> Plant:
    FAULTS[plant.__name__.replace("_", " ")] = plant
    return plant


@fault
def members_are_looked_for_at_index_time(patch: pytest.MonkeyPatch) -> None:
    whole, inside = reference.table, groups.is_in

    def other(study: Study, *more: Any) -> reference.Expected:
        offset = length(study.cohort.offset)
        patch.setattr(groups, "is_in", lambda rule, who, at, *rest: inside(rule, who, at - offset, *rest))
        return whole(study, *more)

    patch.setattr(reference, "table", other)


@fault
def any_group_will_do(patch: pytest.MonkeyPatch) -> None:
    whole, every = groups.is_in, {"identifiers": (REGISTRY, TRIAL), "codes": tuple(KINDS.values())}
    patch.setattr(groups, "is_in", lambda rule, *more: whole(rule.model_copy(update=every), *more))


@fault
def one_group_of_two_is_enough(patch: pytest.MonkeyPatch) -> None:
    whole = reference.table

    def other(study: Study, *more: Any) -> reference.Expected:
        rules = study.cohort.eligible.model_copy(update={"member_of": study.cohort.eligible.member_of[:1]})
        cohort = study.cohort.model_copy(update={"eligible": rules})
        return whole(study.model_copy(update={"cohort": cohort}), *more)

    patch.setattr(reference, "table", other)
