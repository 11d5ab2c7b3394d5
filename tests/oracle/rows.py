"""Rows of SQL queries to events, by what spinney.connectors.sources says of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime

from tests.oracle import fhir
from tests.oracle.events import Event, Person, Site, death

Row = Mapping[str, str | None]


def events_of(rows: Mapping[str, Sequence[Row]], site: Site) -> list[Event]:
    """Rows with one `event` are one event; a row without is an event by itself."""
    stays = {whole[0].get("event"): whole[0] for whole in _together(rows.get("Encounter", ()), site)}
    wholes = [(kind, whole) for kind, some in rows.items() if kind != "Patient" for whole in _together(some, site)]
    found = [_event(kind, whole, stays, site) for kind, whole in wholes]
    return [one for one in found if one is not None]


def _together(rows: Iterable[Row], site: Site) -> list[list[Row]]:
    """The rows of each event, of its newest version only."""
    found: dict[object, list[Row]] = {}
    for place, row in enumerate(rows):
        found.setdefault(row.get("event") or place, []).append(row)

    def written(row: Row) -> datetime:
        return site.read(row["updated"]).first if row.get("updated") else datetime.min.replace(tzinfo=UTC)  # type: ignore[arg-type]

    newest = {key: max(map(written, whole)) for key, whole in found.items()}
    return [[row for row in whole if written(row) == newest[key]] for key, whole in found.items()]


def _event(kind: str, rows: Sequence[Row], stays: Mapping[str | None, Row], site: Site) -> Event | None:
    one = rows[0]
    patient, number = one.get("patient"), one.get("value")
    time = site.read(one["time"]) if one.get("time") else None
    recorded = site.read(one["recorded"]) if one.get("recorded") else None
    until = site.read(one["until"]) if one.get("until") else None
    known = time.last if time else None
    if known and until and kind in ("Observation", "DiagnosticReport"):
        known = max(known, until.last)
    if kind == "Condition" and not time:
        stay = stays.get(one.get("encounter"), {})
        ended = site.read(stay["until"]) if stay.get("until") else None
        time = recorded or ended or (site.read(stay["time"]) if stay.get("time") else None)
        known = (recorded or ended).last if recorded or ended else datetime.max.replace(tzinfo=UTC)  # type: ignore[union-attr]
    if not patient or not time or not known:
        return None
    return Event(
        patient,
        kind,
        frozenset(site.codes.get(row["code"], row["code"]) for row in rows if row.get("code")),
        time,
        recorded.last if recorded and recorded.last >= time.first else known,
        until,
        recorded,
        None if number is None else float(number),
        one.get("unit"),
        one.get("comparator") in fhir.COMPARED,
        tuple(dict.fromkeys(row["text"] for row in rows if row.get("text"))),
        one.get("status"),
        frozenset(row["class"] for row in rows if row.get("class")),
        one.get("status") not in fhir.NEVER,
        one.get("event") or "",
        one.get("parent") or "",
        frozenset(site.codes.get(row["discharge"], row["discharge"]) for row in rows if row.get("discharge")),
    )


def people_of(rows: Mapping[str, Sequence[Row]], site: Site) -> dict[str, Person]:
    return {
        one["patient"]: Person(
            date.fromisoformat(one["birth"]) if one.get("birth") else None,
            one.get("sex"),
            death(one.get("died"), site),
            bool(one.get("died")),
        )
        for one in rows["Patient"]
        if one.get("patient")
    }
