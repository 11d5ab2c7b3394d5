"""Nasty databases of the OMOP Common Data Model: days, midnights and moments, concepts of both sorts, and visits."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from spinney.demo.omop import DISCHARGE, TABLES
from spinney.study.study import Study
from tests.made_up import GLUCOSE, WEIGHT
from tests.made_up_omop import DETAILS, ERA, PARENT
from tests.oracle import omop, reference
from tests.oracle.events import Site
from tests.oracle.faults import Plant
from tests.oracle.records import Records
from tests.oracle.studies import ACTS, DRUGS, ILLNESSES, PRESSURE, SMOKING, SYSTOLIC, make_study

SYSTEMS = {"icd|": "http://hl7.org/fhir/sid/icd-10|", "cvx|": "http://hl7.org/fhir/sid/cvx|"}
VOCABULARIES = {uri: name for name, uri in omop.TERMS.items()}
HABITS = ("sct|never", "sct|former", "sct|current")
UNITS = {"kg": 9529, "g": 8504, "mg/dL": 8840, "mmol/L": 8753, "mm[Hg]": 8876}
MEASURED = ((WEIGHT, ("kg", "g", "furlong")), (GLUCOSE, ("mg/dL", "mmol/L")), (SYSTOLIC, ("mm[Hg]",)), (SMOKING, ()))
VISITS = (9201, 9201, 262, 9203, 9202, 700_001, 700_002, 0)
TYPES = (32818, 32838, 32869)
Row = dict[str, Any]


def _written(code: str) -> str:
    return next((uri + code.removeprefix(ours) for ours, uri in SYSTEMS.items() if code.startswith(ours)), code)


CODES = [_written(one) for one in (*ILLNESSES, *DRUGS, *ACTS, *HABITS, "cvx|140", PRESSURE)]
NUMBERS = {code: 2_000_000_001 + at for at, code in enumerate([*CODES, *(code for code, _ in MEASURED)])}


@dataclass(frozen=True)
class OmopCase:
    """A database, and how its site reads it."""

    study: Study
    timezone: str
    tables: dict[str, list[Row]]
    way: omop.Way

    def told(self) -> reference.Expected:
        site = Site(self.timezone)
        people, events = omop.people_of(self.tables, self.way, site), omop.events_of(self.tables, self.way, site)
        return reference.table(self.study, people, events, site)

    def laid(self, folder: Path) -> Row:
        words = {"discharge": DISCHARGE["5.4"], "parent": PARENT["5.4"]}
        with closing(sqlite3.connect(folder / "omop.db")) as database:
            for table, columns in (TABLES | {"visit_detail": DETAILS, "drug_era": ERA}).items():
                database.execute(f"CREATE TABLE {table} ({columns.format(**words)})")
                for row in self.tables.get(table, ()):
                    holes = ", ".join("?" for _ in row)
                    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({holes})", [*row.values()])
            database.commit()
        habits = {"midnight": self.way.midnight, "visit_details": self.way.details, "eras": [*self.way.eras]}
        types = {kind: [*some] for kind, some in self.way.types.items()}
        return {"kind": "omop", "url": f"sqlite:///{folder / 'omop.db'}", "drug_types": types, **habits}


def omop_case(seed: int) -> OmopCase:
    return OmopRecords(seed).omop_case()


class OmopRecords(Records):
    """Draws one case of tables."""

    def omop_case(self) -> OmopCase:
        words = json.dumps(make_study(self.chance).model_dump(mode="json"))
        for ours, uri in SYSTEMS.items():
            words = words.replace(f'"{ours}', f'"{uri}')
        types = {"MedicationRequest": TYPES[1:2], "MedicationAdministration": TYPES[:1]} if self.often(0.3) else {}
        eras = self.chance.choice(((), (), (), ("MedicationRequest",), ("MedicationStatement",)))
        types = {kind: some for kind, some in types.items() if kind not in eras}
        way = omop.Way(self.chance.choice(("day", "day", "moment")), self.often(0.3), eras, types)
        self.tables: dict[str, list[Row]] = {"person": [], "death": [], **self.vocabulary()}
        for number in range(1, self.chance.randint(5, 9)):
            self.someone(number)
        if not self.often(0.15):
            at = {"visit_start_date": "2023-12-20", "visit_start_datetime": "2023-12-20 10:00:00"}
            at |= {"visit_end_date": "2023-12-20", "visit_end_datetime": "2023-12-20 11:00:00"}
            self.put("visit_occurrence", person_id=99, visit_concept_id=9202, **at)
        for some in self.tables.values():
            self.chance.shuffle(some)
        return OmopCase(Study.model_validate_json(words), self.timezone, self.tables, way)

    def vocabulary(self) -> dict[str, list[Row]]:
        parts = [(number, *code.split("|")) for code, number in NUMBERS.items()]
        parts += [(number, omop.TERMS["UCUM"], unit) for unit, number in UNITS.items()]
        parts += [(9201, "Visit", "IP"), (9203, "Visit", "ER"), (700_001, "Visit", "ward")]
        named = ("concept_id", "vocabulary_id", "concept_code")
        concepts = [dict(zip(named, (at, VOCABULARIES.get(uri, uri), code), strict=True)) for at, uri, code in parts]
        above = ("ancestor_concept_id", "descendant_concept_id", "min_levels_of_separation")
        lines = [(9201, 700_001, 1), (9202, 700_001, 2), (9203, 9203, 0)]
        return {"concept": concepts, "concept_ancestor": [dict(zip(above, line, strict=True)) for line in lines]}

    def put(self, table: str, **row: Any) -> None:
        self.number += 1
        self.tables.setdefault(table, []).append({f"{table}_id": self.number, **row})

    def dated(self, stem: str, moment: datetime, coarse: float = 0.4) -> Row:
        """By the hospital's clock; midnight, or nothing, where only the day is known."""
        local = moment.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None, microsecond=0)
        day = {f"{stem}_date": f"{local:%F}"}
        if self.often(coarse):
            return day | self.chance.choice(({}, {f"{stem}_datetime": f"{local:%F} 00:00:00"}))
        return day | {f"{stem}_datetime": f"{local:%F %T}"}

    def named(self, stem: str, codes: Sequence[str]) -> Row:
        """By the standard concept, the source's own, both, or by a word alone."""
        concept, other = NUMBERS[_written(self.chance.choice(codes))], NUMBERS[self.chance.choice(CODES)]
        return self.chance.choice(
            (
                {f"{stem}_concept_id": concept},
                {f"{stem}_concept_id": concept, f"{stem}_source_concept_id": concept},
                {f"{stem}_concept_id": 0, f"{stem}_source_concept_id": concept},
                {f"{stem}_concept_id": concept, f"{stem}_source_concept_id": other},
                {f"{stem}_concept_id": 0, f"{stem}_source_value": "nobody knows"},
            )
        )

    def someone(self, number: int) -> None:
        born = {"year_of_birth": self.chance.randint(1930, 2008)}
        born |= {"month_of_birth": 10} if self.often(0.8) else {}
        born |= {"day_of_birth": 29} if "month_of_birth" in born and self.often(0.8) else {}
        self.tables["person"].append(
            {"person_id": number, "gender_concept_id": self.chance.choice((8507, 8532, 0)), **born}
        )
        self.moments = []
        for _ in range(self.chance.randint(1, 4)):
            start = self.turn()
            end = start + timedelta(hours=self.chance.choice((0, 1, 24, 30, 100, 240)))
            self.moments += [start, end]
            self.stay(number, start, end)
        for _ in range(self.chance.choice((0, 0, 0, 1, 1, 2))):
            died = self.chance.choice(self.moments) + timedelta(hours=self.chance.choice((0, 0, 1, 24, 200, 720)))
            self.tables["death"].append({"person_id": number, **self.dated("death", died, 0.6)})
        for _ in range(self.chance.randint(8, 30)):
            self.chance.choice((self.result, self.result, self.illness_of, self.drug_of, self.drug_of, self.act_of))(
                number
            )

    def stay(self, who: int, start: datetime, end: datetime) -> None:  # type: ignore[override]
        coarse, visit = self.chance.choice((0.0, 0.0, 1.0, 0.3)), self.chance.choice(VISITS)
        type_ = omop.STILL_THERE if self.often(0.1) else 32827
        stem = "visit_detail" if self.often(0.2) else "visit"
        table = "visit_detail" if stem == "visit_detail" else "visit_occurrence"
        last = self.dated(f"{stem}_end", end, coarse)
        last = {f"{stem}_end_date": last[f"{stem}_end_date"]} if stem == "visit_detail" else last
        named = {f"{stem}_concept_id": visit} | ({"visit_type_concept_id": type_} if stem == "visit" else {})
        self.put(table, person_id=who, **named, **self.dated(f"{stem}_start", start, coarse), **last)

    def result(self, who: int) -> None:
        code, units = self.chance.choice(MEASURED)
        table = "observation" if not units or self.often(0.2) else "measurement"
        row = self.dated(table, self.moment()) | {"person_id": who, f"{table}_concept_id": NUMBERS[code]}
        if not units:
            habit = self.chance.choice(HABITS)
            said = ({"value_as_concept_id": NUMBERS[habit]}, {"value_as_string": "heavy smoker"}, {})
            return self.put(table, **row, **self.chance.choice(said))
        unit = self.chance.choice(units)
        row["value_as_number"] = self.chance.choice((70, 70.5, self.chance.uniform(4, 150), None))
        row |= {"unit_concept_id": UNITS[unit]} if unit in UNITS and self.often(0.7) else {"unit_source_value": unit}
        if table == "measurement" and self.often(0.3):
            row["operator_concept_id"] = self.chance.choice((*omop.OPERATORS, 4172703, 0))
        return self.put(table, **row)

    def illness_of(self, who: int) -> None:
        last = self.dated("condition_end", self.moment()) if self.often(0.2) else {}
        at = self.dated("condition_start", self.moment())
        self.put("condition_occurrence", person_id=who, **self.named("condition", ILLNESSES), **at, **last)

    def drug_of(self, who: int) -> None:
        codes, start = (*DRUGS, *DRUGS, "cvx|140"), self.moment()
        if self.often(0.2):
            concept = NUMBERS[_written(self.chance.choice(codes))]
            days = {"drug_era_start_date": f"{start:%F}", "drug_era_end_date": f"{start + timedelta(days=9):%F}"}
            return self.put("drug_era", person_id=who, drug_concept_id=concept, **days)
        at = self.dated("drug_exposure_start", start) | {"drug_type_concept_id": self.chance.choice(TYPES)}
        last = self.dated("drug_exposure_end", start + timedelta(days=3)) if self.often(0.4) else {}
        return self.put("drug_exposure", person_id=who, **self.named("drug", codes), **at, **last)

    def act_of(self, who: int) -> None:
        at = self.dated("procedure", self.moment())
        self.put("procedure_occurrence", person_id=who, **self.named("procedure", ACTS), **at)


FAULTS: dict[str, Plant] = {}


def fault(plant: Plant) -> Plant:
    FAULTS[plant.__name__.replace("_", " ")] = plant
    return plant


@fault
def a_day_is_its_midnight(patch: pytest.MonkeyPatch) -> None:
    whole = omop.when

    def first(*asked: Any) -> Any:
        found = whole(*asked)
        return found and type(found)(found.first, found.first)

    patch.setattr(omop, "when", first)


@fault
def midnight_is_a_moment(patch: pytest.MonkeyPatch) -> None:
    whole = omop.when
    patch.setattr(omop, "when", lambda row, stem, _, site: whole(row, stem, omop.Way("moment"), site))


@fault
def the_last_death_is_the_first(patch: pytest.MonkeyPatch) -> None:
    whole = omop.people_of
    patch.setattr(omop, "people_of", lambda tables, *how: whole({**tables, "death": _last(tables["death"])}, *how))


def _last(deaths: Sequence[Row]) -> list[Row]:
    return [*{row["person_id"]: row for row in sorted(deaths, key=lambda row: str(row["death_date"]))}.values()]


@fault
def source_concepts_are_not_read(patch: pytest.MonkeyPatch) -> None:
    whole = omop._names
    patch.setattr(
        omop, "_names", lambda row, stem, tables: whole({**row, f"{stem}_source_concept_id": 0}, stem, tables)
    )


@fault
def less_than_a_limit_is_the_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(omop, "OPERATORS", {})


@fault
def who_is_still_there_has_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(omop, "STILL_THERE", -1)


@fault
def a_visit_is_only_what_its_own_concept_says(patch: pytest.MonkeyPatch) -> None:
    whole = omop._class
    patch.setattr(omop, "_class", lambda concept, tables: whole(concept, {**tables, "concept_ancestor": ()}))


@fault
def all_drugs_are_of_every_type(patch: pytest.MonkeyPatch) -> None:
    whole = omop.events_of
    patch.setattr(
        omop,
        "events_of",
        lambda tables, way, site: whole(tables, omop.Way(way.midnight, way.details, way.eras), site),
    )
