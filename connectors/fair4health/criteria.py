"""Eligibility criteria as a population: which events open a row, and what must have happened before."""

from __future__ import annotations

import re
from typing import Any

from spinney.connectors.fair4health.documents import Block, member_text, shown
from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.connectors.fair4health.queries import events_of, parameters_of, queried_kind

SINCE = re.compile(r"ge(\d{4})(-\d\d)?(-\d\d)?")
STAYS = {"kind": "Encounter", "classes": ["IMP"], "statuses": ["finished"], "at": "end"}


def population_of(criteria: list[Block], of_stays: bool, notes: Notes) -> dict[str, Any]:
    """The study's population; what can't be one is listed."""
    index: dict[str, Any] = {}
    since: dict[str, str] = {}
    before: list[dict[str, Any]] = []
    for one in criteria:
        query, path = member_text(one, "fhir_query"), member_text(one, "fhir_path")
        try:
            if path:
                raise Untranslated(f"a study has no rule for the FHIRPath {shown(path)}")
            kind = queried_kind(query)
            if kind == "Encounter" and not index:
                index, since = events_of(query, notes, besides=frozenset({"date"})), _since(query)
            elif kind == "Encounter":
                raise Untranslated("a second criterion on Encounter, and rows have one kind of index event")
            elif kind != "Patient":
                before.append(_history(query, notes))
            elif parameters_of(query):
                raise Untranslated("of a patient, a study knows age and sex, and chooses by age alone")
        except Untranslated as why:
            notes.leave_out(f"eligibility {shown(query)}: {why}", one.line_of("fhir_query"))
    if not index:
        notes.assume("index event: every inpatient stay that ended; FAIR4Health has no time of prediction")
    if before:
        notes.assume("eligibility: what happened before index time; FAIR4Health looks at what came later, too")
    if not of_stays:
        notes.assume("a row per patient, as in FAIR4Health: the first index event that all rules keep (only)")
    eligible = ({} if of_stays else {"only": "first-eligible"}) | ({"before": before} if before else {})
    return {"index": {**STAYS, **index}, **since, **({"eligible": eligible} if eligible else {})}


def _since(query: str) -> dict[str, str]:
    dates = [value for parameter, value in parameters_of(query) if parameter.partition(":")[0] == "date"]
    if not dates:
        return {}
    match = SINCE.fullmatch(dates[0])
    if match is None or len(dates) > 1:
        raise Untranslated(f"search parameter date={shown(','.join(dates), 40)}; a study has `since` (date=ge2010)")
    return {"since": f"{match[1]}{match[2] or '-01'}{match[3] or '-01'}"}


def _history(query: str, notes: Notes) -> dict[str, Any]:
    events = events_of(query, notes)
    words = ", ".join(code.rpartition("|")[2] for code in events.get("codes", ()))
    return {"name": shown(f"{events['kind']} {words}").rstrip(", "), **events}
