"""What a study wants, as FHIR search queries: code and date filters pushed to the server, addresses kept short.

A filter is only pushed where it cannot lose anything that the study may need, and where the server declares it: a
server that does not know a parameter may answer with nothing at all. What is not pushed is filtered later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from spinney.connectors.sources import Wanted

LONGEST_CODES = 1500  # with path, dates and the rest an address stays under 1,800 characters

# Left out are drugs: a search by `code` loses those that are named by a Medication, which may be in the record itself.
# `code` alone would miss the parts of a panel: a blood pressure's systolic value has its code in a component.
CODE_PARAMETERS = {
    "AllergyIntolerance": "code",
    "Condition": "code",
    "DiagnosticReport": "code",
    "Encounter": "type",
    "Immunization": "vaccine-code",
    "Observation": "combo-code",
    "Procedure": "code",
}
# Left out are types whose only date may be that of recording, which the search by date of onset would lose: Condition,
# AllergyIntolerance, MedicationStatement.
DATE_PARAMETERS = {
    "DiagnosticReport": "date",
    "Encounter": "date",
    "Immunization": "date",
    "MedicationAdministration": "effective-time",
    "MedicationRequest": "authoredon",
    "Observation": "date",
    "Procedure": "date",
}


@dataclass(frozen=True)
class Query:
    """One search: a resource type and its filters, encoded."""

    kind: str
    filters: tuple[str, ...] = ()

    def address(self, *more: str) -> str:
        return f"{self.kind}?" + "&".join((*self.filters, *more))


def offered(wanted: Sequence[Wanted], declared: Mapping[str, frozenset[str]]) -> list[Wanted]:
    """What to ask this server for: what only helps may be missing, as Medications are where orders name their drug."""
    return [one for one in wanted if not one.helps or not declared or one.kind in declared]


def queries(wanted: Wanted, declared: frozenset[str] | None) -> list[Query]:
    """The searches that together bring what is wanted. `declared` None: push every filter."""
    dates = date_filters(wanted, declared)
    parameter = _usable(CODE_PARAMETERS, wanted.kind, declared)
    if not wanted.codes or parameter is None:
        return [Query(wanted.kind, dates)]
    return [Query(wanted.kind, (f"{parameter}={chunk}", *dates)) for chunk in _chunks(wanted.codes)]


def unpushed(wanted: Wanted, declared: frozenset[str]) -> list[str]:
    """What the report should say of filters that the server does not offer."""
    asked = [(bool(wanted.codes), CODE_PARAMETERS), (bool(wanted.since or wanted.until), DATE_PARAMETERS)]
    missing = [
        names[wanted.kind]
        for ask, names in asked
        if ask and wanted.kind in names and names[wanted.kind] not in declared
    ]
    return [f"{wanted.kind}: the server offers no search by {name}, so all were read" for name in missing]


def date_filters(wanted: Wanted, declared: frozenset[str] | None) -> tuple[str, ...]:
    parameter = _usable(DATE_PARAMETERS, wanted.kind, declared)
    if parameter is None:
        return ()
    bounds = (("ge", wanted.since), ("le", wanted.until))
    return tuple(f"{parameter}={prefix}{quote(instant(when), safe='')}" for prefix, when in bounds if when)


def instant(when: datetime) -> str:
    """A point in time as FHIR writes it, in UTC."""
    utc = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _usable(parameters: Mapping[str, str], kind: str, declared: frozenset[str] | None) -> str | None:
    name = parameters.get(kind)
    return name if name is not None and (declared is None or name in declared) else None


def _chunks(codes: Sequence[str]) -> Iterator[str]:
    """Codes joined by commas (FHIR's "or"), each text short enough for an address."""
    chunk = ""
    for code in sorted(set(codes)):
        encoded = quote(re.sub(r"([\\,$])", r"\\\1", code), safe="")
        if chunk and len(chunk) + 1 + len(encoded) > LONGEST_CODES:
            yield chunk
            chunk = ""
        chunk = f"{chunk},{encoded}" if chunk else encoded
    yield chunk
