"""The same patients as FHIR, as rows of queries and as OMOP give the same table to the last bit.

Many things are known to the day only, many happen at one moment, and some on the days on which the clock is changed.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from spinney.cohort.pull_report import PullResult
from spinney.configuration.site import SiteSettings
from spinney.study.study import Study
from tests.made_up import GLUCOSE, NOW, WEIGHT, coded, feature, pull_at, study
from tests.made_up_omop import model
from tests.servers.fhir_traps import FhirTraps

ZONE = ZoneInfo("Europe/Berlin")
ILL, DRUG = "http://snomed.info/sct|44054006", "http://www.nlm.nih.gov/research/umls/rxnorm|6809"
CONCEPTS = {WEIGHT: 3025315, GLUCOSE: 3000483, ILL: 201826, DRUG: 1503297}
UNITS = {"kg": 9529, "mg/dL": 8840, "mmol/L": 8753}
KINDS = ("Encounter", "Observation", "Condition", "MedicationRequest")


class Happened(NamedTuple):
    """A thing that happened; times are local, and days where nobody knows more."""

    kind: str
    who: str
    code: str
    time: str
    until: str | None = None
    value: float | None = None
    unit: str | None = None
    comparator: str | None = None


def lives(seed: int) -> tuple[dict[str, str | None], list[Happened]]:
    """Who died when, and what happened to whom."""
    chance = random.Random(seed)
    died: dict[str, str | None] = {}
    found: list[Happened] = []
    for number in range(40):
        who = f"p{number}"
        day = datetime(2022, chance.choice((1, 3, 10)), 24) + timedelta(days=chance.randrange(10))
        for _ in range(chance.randint(1, 4)):
            out = day + timedelta(hours=chance.choice((0, 3, 30, 72)))
            found.append(Happened("Encounter", who, chance.choice(("IMP", "IMP", "AMB")), *ends(chance, day, out)))
            hours = [chance.choice((-30, 0, 0, 2, 24)) for _ in range(chance.randint(0, 6))]
            found += [something(chance, who, day + timedelta(hours=one)) for one in hours]
            day = out + timedelta(days=chance.choice((1, 12, 40)), hours=chance.randrange(24))
        last = found[-1].time if chance.random() < 0.5 else moment(chance, day)
        died[who] = chance.choice((None, None, last[:10], last))
    return died, found


def something(chance: random.Random, who: str, at: datetime) -> Happened:
    kind = chance.choice(("Observation", "Observation", "Condition", "MedicationRequest"))
    time = moment(chance, at)
    if kind != "Observation":
        return Happened(kind, who, ILL if kind == "Condition" else DRUG, time)
    code, unit = chance.choice(((WEIGHT, "kg"), (GLUCOSE, "mg/dL"), (GLUCOSE, "mmol/L")))
    return Happened(
        kind, who, code, time, None, chance.choice((5.5, 70.25, 70.25, 81)), unit, chance.choice("|||<").strip("|")
    )


def ends(chance: random.Random, start: datetime, end: datetime) -> tuple[str, str]:
    return (moment(chance, start), moment(chance, end)) if chance.random() < 0.7 else (f"{start:%F}", f"{end:%F}")


def moment(chance: random.Random, at: datetime) -> str:
    """Never at midnight, which OMOP has for a time that nobody knows, and not in the hour that local time has twice."""
    at = at.replace(hour=1 if at.hour == 2 else at.hour, minute=7)
    return f"{at:%F}" if chance.random() < 0.4 else f"{at:%FT%T}"


def zoned(time: str) -> str:
    return time if len(time) == 10 else datetime.fromisoformat(time).replace(tzinfo=ZONE).isoformat()


def resources(died: dict[str, str | None], found: list[Happened]) -> Iterator[dict[str, Any]]:
    for who, when in died.items():
        dead = {"deceasedDateTime": zoned(when)} if when else {}
        yield {"resourceType": "Patient", "id": who, "birthDate": "1950-10-30", "gender": "female", **dead}
    for number, one in enumerate(found):
        base = {"resourceType": one.kind, "id": f"r{number}", "subject": {"reference": f"Patient/{one.who}"}}
        if one.kind == "Encounter":
            period = {"start": zoned(one.time), "end": zoned(one.until or "")}
            yield {**base, "status": "finished", "class": {"code": one.code}, "period": period}
        elif one.kind == "Observation":
            quantity = {"value": one.value, "code": one.unit} | (
                {"comparator": one.comparator} if one.comparator else {}
            )
            said = {"status": "final", "effectiveDateTime": zoned(one.time), "valueQuantity": quantity}
            yield {**base, "code": coded(one.code), **said}
        elif one.kind == "Condition":
            yield {**base, "code": coded(one.code), "onsetDateTime": zoned(one.time)}
        else:
            ordered = {"status": "active", "intent": "order", "authoredOn": zoned(one.time)}
            yield {**base, "medicationCodeableConcept": coded(one.code), **ordered}


def as_queries(folder: Path, died: dict[str, str | None], found: list[Happened]) -> dict[str, Any]:
    with closing(sqlite3.connect(folder / "his.db")) as his:
        his.execute("CREATE TABLE person (patient, birth, sex, died)")
        his.executemany("INSERT INTO person VALUES (?, '1950-10-30', 'female', ?)", died.items())
        his.execute("CREATE TABLE e (event, kind, patient, code, time, until, value, unit, comparator, status, class)")
        for number, one in enumerate(found):
            stay = one.kind == "Encounter"
            row = (number, one.kind, one.who, None if stay else one.code, one.time, one.until, one.value, one.unit)
            his.execute(
                "INSERT INTO e VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, one.comparator, "finished" if stay else None, one.code if stay else None),
            )
        his.commit()
    events = {kind: f"SELECT * FROM e WHERE kind = '{kind}'" for kind in KINDS}
    return {
        "kind": "sql",
        "url": f"sqlite:///{folder / 'his.db'}",
        "patients": "SELECT * FROM person",
        "events": events,
    }


def as_omop(died: dict[str, str | None], found: list[Happened]) -> list[str]:
    people = {who: number for number, who in enumerate(died, start=2)}
    named = [(CONCEPTS[code], "LOINC", code.partition("|")[2]) for code in (WEIGHT, GLUCOSE)]
    named += [(UNITS[unit], "UCUM", unit) for unit in ("kg", "mg/dL")]
    columns = ("concept_id", "vocabulary_id", "concept_code")
    rows: list[tuple[str, dict[str, object]]] = [("concept", dict(zip(columns, one, strict=True))) for one in named]
    for who, number in people.items():
        born = {"year_of_birth": 1950, "month_of_birth": 10, "day_of_birth": 30, "gender_concept_id": 8532}
        rows.append(("person", {"person_id": number, **born, "person_source_value": who}))
        if when := died[who]:
            rows.append(("death", {"person_id": number, **both("death", when)}))
    for number, one in enumerate(found):
        row: dict[str, object] = {"person_id": people[one.who]}
        if one.kind == "Encounter":
            row |= {"visit_occurrence_id": number, "visit_concept_id": 9201 if one.code == "IMP" else 9202}
            rows.append(
                ("visit_occurrence", {**row, **both("visit_start", one.time), **both("visit_end", one.until or "")})
            )
        elif one.kind == "Observation":
            row |= {
                "measurement_id": number,
                "measurement_concept_id": CONCEPTS[one.code],
                "value_as_number": one.value,
            }
            row |= {"unit_concept_id": UNITS[one.unit or ""], "operator_concept_id": 4171756 if one.comparator else 0}
            rows.append(("measurement", {**row, **both("measurement", one.time)}))
        else:
            table, stem = {"Condition": ("condition_occurrence", "condition")}.get(one.kind, ("drug_exposure", "drug"))
            row |= {f"{table}_id": number, f"{stem}_concept_id": CONCEPTS[one.code]}
            rows.append(
                (table, {**row, **both("condition_start" if stem == "condition" else "drug_exposure_start", one.time)})
            )
    return model(*rows)


def both(stem: str, time: str) -> dict[str, object]:
    day: dict[str, object] = {f"{stem}_date": time[:10]}
    return day | ({f"{stem}_datetime": time.replace("T", " ")} if len(time) > 10 else {})


def asked(outcome: str, at: str) -> Study:
    weights = [
        feature(f"weight_{how}", how) for how in ("last", "first", "mean", "delta", "slope", "count", "days-since")
    ]
    sugar = feature("sugar", "mean", codes=[GLUCOSE], molar_mass=180.156) | {"unit": "mg/dL"}
    low = feature("low", "min", codes=[GLUCOSE], molar_mass=180.156, censored="bound") | {"unit": "mg/dL"}
    things = [
        feature("ill", "count", kind="Condition", codes=[ILL]),
        feature("drugs", "count", kind="MedicationRequest", codes=[DRUG]),
        feature("stayed", "max", kind="Encounter", codes=[], value="days") | {"unit": None},
        {"name": "age", "kind": "continuous", "range": [0, 120], "source": {"patient": "age"}},
    ]
    index = {"kind": "Encounter", "classes": ["IMP"], "statuses": ["finished"], "at": at}
    return study(*weights, sugar, low, *things, label={"outcome": outcome, "horizon": "30d"}, index=index)


def pulled(home: Path, source: dict[str, Any], asked: Study) -> PullResult:
    words = {"name": "ash", "home": home, "source": source, "timezone": "Europe/Berlin"}
    return pull_at(asked, SiteSettings.model_validate(words), now=NOW)


@pytest.mark.parametrize(("outcome", "at"), [("index-event", "end"), ("death", "start")])
def test_fhir_queries_and_omop_give_the_same_table(
    tmp_path: Path, postgres: Callable[..., str], outcome: str, at: str
) -> None:
    died, found = lives(3)
    (tmp_path / "fhir").mkdir()
    with (tmp_path / "fhir" / "all.ndjson").open("w") as file:
        file.writelines(json.dumps(one) + "\n" for one in resources(died, found))
    statements = as_omop(died, found)
    with closing(sqlite3.connect(tmp_path / "omop.db")) as database:
        database.executescript(";\n".join(statements))
    named = {"kind": "omop", "patient": "person_source_value"}
    with ExitStack() as stack:
        server = stack.enter_context(FhirTraps(list(resources(died, found)), ("combo-code",)))
        sources = {
            "files": {"kind": "files", "path": tmp_path / "fhir"},
            "server": {"kind": "fhir-rest", "base_url": server.base_url},
            "queries": as_queries(tmp_path, died, found),
            "omop": {**named, "url": f"sqlite:///{tmp_path / 'omop.db'}"},
            "omop on postgres": {**named, "url": postgres(*statements)},
        }
        results = {name: pulled(tmp_path / "home", source, asked(outcome, at)) for name, source in sources.items()}
    assert results["files"].cohort.rows > 30
    assert results["files"].report.positive > 3
    assert {name: one.cohort.digest for name, one in results.items()} == dict.fromkeys(
        results, results["files"].cohort.digest
    )
    assert len({one.unripe.digest for one in results.values()}) == 1
