"""Nasty rows: what queries of a hospital's database yield, with the same studies and the same kind of times."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from spinney.study.study import Study
from tests.made_up import GLUCOSE, WEIGHT
from tests.oracle import groups, reference, rows
from tests.oracle.events import Site
from tests.oracle.records import STATUSES, Records
from tests.oracle.studies import ACTS, DRUGS, HABITS, ILLNESSES, SMOKING, SYSTOLIC, make_study

CODES = {
    "Condition": ILLNESSES,
    "MedicationRequest": DRUGS,
    "MedicationAdministration": DRUGS,
    "MedicationStatement": DRUGS,
    "Procedure": ACTS,
    "Immunization": ("cvx|140",),
    "AllergyIntolerance": ("sct|peanut",),
}
UNITS = {
    WEIGHT: ("kg", "g", "[lb_av]", "furlong"),
    GLUCOSE: ("mg/dL", "mmol/L"),
    SYSTOLIC: ("mm[Hg]",),
    SMOKING: (),
}
VERIFIED = ("confirmed", "refuted", "differential", "provisional", "entered-in-error")
KINDS = ("Encounter", "Observation", *CODES)
MEMBERS = "Members"
NEEDED = {"Patient": [], MEMBERS: ["group"]}
Row = dict[str, Any]


@dataclass(frozen=True)
class RowCase:
    """A table of a database by kind."""

    study: Study
    timezone: str
    tables: dict[str, list[Row]]

    def read(self) -> reference.Read:
        site = Site(self.timezone)
        people, members = rows.people_of(self.tables, site), groups.of_rows(self.tables.get(MEMBERS, ()), site)
        events = {kind: some for kind, some in self.tables.items() if kind != MEMBERS}
        return reference.Read(people, rows.events_of(events, site), site, members)

    def told(self) -> reference.Expected:
        return reference.table(self.study, *self.read())

    def laid(self, folder: Path) -> Row:
        with closing(sqlite3.connect(folder / "his.db")) as his:
            for kind, some in self.tables.items():
                names = sorted({"patient", *chain.from_iterable(some), *NEEDED.get(kind, ["time"])})
                columns, holes = (", ".join(form.format(name) for name in names) for form in ('"{}" TEXT', ":{}"))
                his.execute(f"CREATE TABLE {kind} ({columns})")
                his.executemany(f"INSERT INTO {kind} VALUES ({holes})", [dict.fromkeys(names) | row for row in some])
            his.commit()
        events = {kind: f"SELECT * FROM {kind}" for kind in self.tables if kind not in NEEDED}
        his_db = {"kind": "sql", "url": f"sqlite:///{folder / 'his.db'}"}
        lists = {"groups": f"SELECT * FROM {MEMBERS}"} if MEMBERS in self.tables else {}
        return his_db | {"patients": "SELECT * FROM Patient", "events": events} | lists


class RowRecords(Records):
    """Draws one case of rows."""

    def row_case(self) -> RowCase:
        study = make_study(self.chance)
        found: dict[str, list[Row]] = {kind: [] for kind in ("Patient", *KINDS)}
        for number in range(self.chance.randint(4, 9)):
            who = f"{'aB'[number % 2]} {number}"
            found["Patient"].append(self.someone(who))
            for kind, row in self.events(who, found["Patient"][-1]):
                found[kind] += self.several(row)
        if not self.often(0.15):
            late = {"patient": "zoe", "class": "AMB", "time": "2023-12-20T10:00:00Z", "until": "2023-12-20T11:00:00Z"}
            found["Encounter"].append(late | {"status": "finished"})
        for some in found.values():
            self.chance.shuffle(some)
        return RowCase(study, self.timezone, found)

    def instant(self, moment: datetime) -> str:
        """As databases write it: often by the hospital's clock, without an offset."""
        if self.often(0.4):
            return super().instant(moment)
        local = moment.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)
        return local.isoformat(sep=self.chance.choice(" T"))

    def someone(self, who: str) -> Row:
        born = f"{self.chance.randint(1930, 2008)}-{self.chance.choice(('05-17', '01-01', '12-31'))}"
        return {
            "patient": who,
            "birth": born if self.often(0.9) else None,
            "sex": self.chance.choice(("female", "male")),
        }

    def events(self, who: str, person: Row) -> list[tuple[str, Row]]:
        self.moments, found = [], []
        for _ in range(self.chance.randint(1, 4)):
            start = self.turn()
            end = start + timedelta(hours=self.chance.choice((0, 1, 24, 30, 100, 240)))
            self.moments += [start, end]
            found.append(("Encounter", self.visit(who, start, end)))
        stays = [row["event"] for _, row in found]
        if self.often(0.35):
            died = self.chance.choice(self.moments) + timedelta(hours=self.chance.choice((0, 0, 1, 24, 200, 720)))
            person["died"] = self.written(died, 0.6)
        for _ in range(self.chance.randint(8, 30)):
            kind = self.chance.choice(
                ("Observation", "Observation", "Observation", "Condition", "MedicationRequest", *CODES)
            )
            found.append((kind, self.reading(who) if kind == "Observation" else self.entry(who, kind, stays)))
        return found

    def visit(self, who: str, start: datetime, end: datetime) -> Row:
        coarse = self.chance.choice((0.0, 0.0, 1.0, 0.3))
        row = self.row(who, "Encounter", self.written(start, coarse), ("sct|ward", "sct|clinic"))
        row |= {"event": self.id("e"), "class": self.chance.choice(("IMP", "IMP", "AMB", "EMER"))}
        return row | ({"until": self.written(end, coarse)} if self.often(0.92) else {})

    def row(self, who: str, kind: str, time: str | None, codes: Sequence[str]) -> Row:
        row = {"patient": who, "time": time, "code": self.chance.choice(codes)}
        if kind in STATUSES:
            row["status"] = self.status(kind)
        return row | ({"recorded": self.written(self.moment())} if self.often(0.2) and kind != "Encounter" else {})

    def reading(self, who: str) -> Row:
        code, units = self.chance.choice(
            (
                (WEIGHT, ("kg", "g", "[lb_av]", "furlong")),
                (GLUCOSE, ("mg/dL", "mmol/L")),
                (SYSTOLIC, ("mm[Hg]",)),
                (SMOKING, ()),
            )
        )
        row = self.row(who, "Observation", self.written(self.moment()), (code,))
        if not units:
            return row | {"text": self.chance.choice(HABITS)}
        row |= {
            "value": str(self.chance.choice((70, 70.5, self.chance.uniform(4, 150)))),
            "unit": self.chance.choice(units),
        }
        return row | ({"comparator": self.chance.choice(("<", "<=", ">", ">="))} if self.often(0.12) else {})

    def entry(self, who: str, kind: str, stays: Sequence[str]) -> Row:
        row = self.row(who, kind, self.written(self.moment()), CODES[kind])
        if kind == "Condition" and self.often(0.4):
            row |= {"time": None, "recorded": None, "encounter": self.chance.choice(stays)}
        if kind in ("Condition", "AllergyIntolerance") and self.often(0.4):
            row["status"] = self.chance.choice(
                ("confirmed", "refuted", "differential", "provisional", "entered-in-error")
            )
        return row

    def several(self, row: Row) -> list[Row]:
        """The same event in rows of several codes or versions, or again as another event."""
        found = [row]
        if self.often(0.2):
            row.setdefault("event", self.id("r"))
            found.append({**row, "code": self.chance.choice((*ILLNESSES, *DRUGS, "local|77"))})
        if self.often(0.1) and "event" in row:
            old = {"updated": self.chance.choice(("2023-05-31T22:00:00Z", "2023-05-31 20:00:00+00:00"))}
            found += [{**one, **old, "status": "entered-in-error"} for one in found]
            for one in found[: len(found) // 2]:
                one["updated"] = "2023-06-01T00:30:00+02:00"
        if "event" not in row and self.often(0.15):
            found.append({**row})
        return found
