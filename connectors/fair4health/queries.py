"""FHIR queries as a study says them: which events are meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

from spinney.connectors.fair4health.documents import shown
from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.study.definition import Kind

KINDS = frozenset(get_args(Kind))
# Search parameters that choose no other resources than the study does by itself.
HARMLESS = frozenset({"subject", "patient", "_count", "_sort", "_format", "_summary", "_total", "_pretty"})
MEMBERS = {"code": "codes", "medication.code": "codes", "vaccine-code": "codes", "status": "statuses"}
MEMBERS_OF = {
    "AllergyIntolerance": {"clinical-status": "statuses"},
    "Condition": {"clinical-status": "statuses"},
    "Encounter": {"class": "classes", "type": "codes"},
    "Observation": {"value-concept": "answers"},
}
ANY_SYSTEM = (
    "a code without a system means any system, as in FHIR (*|I50); with its system written before it, as in "
    "http://hl7.org/fhir/sid/icd-10|I50, nothing else can be meant"
)


def queried_kind(query: str) -> str:
    """The resource type that a query asks for."""
    return _split(query)[0]


def parameters_of(query: str) -> list[tuple[str, str]]:
    """Search parameters and their values."""
    return parse_qsl(_split(query)[1], keep_blank_values=True)


def _split(query: str) -> tuple[str, str]:
    try:
        parts = urlsplit(query)
    except ValueError:
        raise Untranslated(f"{shown(query)} is no FHIR query") from None
    return parts.path.strip("/"), parts.query


def events_of(query: str, notes: Notes, besides: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The events of a query. `besides` are parameters that somebody else looks at."""
    kind = queried_kind(query)
    if kind not in KINDS:
        raise Untranslated(f"resource type {shown(kind) or 'unknown'}")
    chosen: dict[str, Any] = {"kind": kind}
    for parameter, value in parameters_of(query):
        name, _, modifier = parameter.partition(":")
        if name in HARMLESS or name in besides:
            continue
        member = (MEMBERS | MEMBERS_OF.get(kind, {})).get(name)
        if member is None or (modifier and (member != "codes" or modifier != "sw")):
            raise Untranslated(f"search parameter {shown(parameter)}={shown(value, 40)}")
        if member in chosen:
            raise Untranslated(f"search parameter {shown(name)} twice, so that both must hold")
        chosen[member] = [*_words(member, value, modifier == "sw", notes)]
    return chosen


def _words(member: str, value: str, begins: bool, notes: Notes) -> Iterator[str]:
    """One of several between commas each, as a study writes it."""
    for part in value.split(","):
        system, bar, plain = part.rpartition("|")
        if not value.isprintable() or any(odd in part for odd in "*\\") or not (plain or (bar and member == "codes")):
            raise Untranslated(f"{shown(part, 40) or 'nothing'} is no code")
        if member == "codes":
            if not system:
                notes.assume(ANY_SYSTEM)
            yield f"{system or '*'}|{plain}{'*' if begins or not plain else ''}"
        else:
            yield part if system and member == "answers" else plain
