"""Who was in which group and when, written from the Group pages of R4 and R5 without a look at the code that is judged.

https://hl7.org/fhir/R4/group.html, https://hl7.org/fhir/R5/group.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spinney.study.definition import Membership
from tests.oracle import fhir
from tests.oracle.events import Site, When


@dataclass(frozen=True)
class Member:
    """Somebody in a group, in which from when until when. `left`: it is said that it is over."""

    patient: str
    identifiers: frozenset[str]
    codes: frozenset[str]
    since: When | None
    till: When | None
    left: bool = False


def of_resources(resources: Iterable[Mapping[str, Any]], site: Site) -> list[Member]:
    """The members of all Groups that name who is in them."""
    groups = [one for one in fhir.newest(resources).values() if one["resourceType"] == "Group" and names_members(one)]
    return [member for one in groups for member in _members(one, site)]


def names_members(group: Mapping[str, Any]) -> bool:
    """Whether a Group lists its members and is in use, and nothing but patients can be in it."""
    real = group.get("actual") is True or group.get("membership") == "enumerated"
    described = group.get("actual") is False or group.get("membership", "enumerated") != "enumerated"
    minus = any(one.get("exclude") for one in group.get("characteristic", ()))
    only_a_number = group.get("quantity") and not group.get("member")
    nested = any("Group/" in one["entity"].get("reference", "") for one in group.get("member", ()))
    return real and not (described or minus or only_a_number or nested or group.get("active") is False)


def _members(group: Mapping[str, Any], site: Site) -> list[Member]:
    identifiers = frozenset(f"{one['system']}|{one['value']}" for one in group.get("identifier", ()))
    codes = frozenset(site.codes.get(code, code) for code in fhir.codings(group.get("code")))
    found = []
    for one in group.get("member", ()):
        who = one["entity"].get("reference", "").split("/_history")[0]
        if not who.startswith("urn:uuid:") and "Patient" not in who.split("/")[-2:-1]:
            continue
        try:
            since, till = _period(one.get("period", {}), site)
        except ValueError:
            continue
        name = who.removeprefix("urn:uuid:").rsplit("/", 1)[-1]
        found.append(Member(name, identifiers, codes, since, till, one.get("inactive") is True))
    return found


def of_rows(rows: Sequence[Mapping[str, str | None]], site: Site) -> list[Member]:
    """Rows of a query `groups`."""
    found = []
    for one in rows:
        if one.get("patient") and one.get("group"):
            called = frozenset({str(one["group"])})
            found.append(Member(str(one["patient"]), called, called, *_period(one, site)))
    return found


def _period(period: Mapping[str, Any], site: Site) -> tuple[When | None, When | None]:
    since, till = (site.read(period[end]) if period.get(end) else None for end in ("start", "end"))
    return since, till


def is_in(rule: Membership, patient: str, at: datetime, members: Sequence[Member], site: Site) -> bool:
    """Whether somebody was surely in one of a rule's groups at a moment."""
    return any(
        one.patient == patient
        and (one.identifiers & {*rule.identifiers} or any(means(code, has) for code in rule.codes for has in one.codes))
        and was_in(one, at, site)
        for one in members
    )


def was_in(one: Member, at: datetime, site: Site) -> bool:
    """A first day counts when it is over, a last day to its end; who has left nobody knows when, was never in it."""
    if one.left and (one.till is None or one.till.last > site.now):
        return False
    return (one.since is None or one.since.last <= at) and (one.till is None or at <= one.till.last)


def means(code: str, has: str) -> bool:
    """Whether a code as a study writes it means one that a group has."""
    system, _, word = code.rpartition("|")
    its_system, _, its_word = has.partition("|")
    same = its_word.startswith(word[:-1]) if word.endswith("*") else its_word == word
    return same and system in ("*", its_system)
