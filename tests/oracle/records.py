"""Nasty records: cohorts in which everything that is allowed happens, much of it at the same moment.

A seed makes a cohort. Times are drawn around those that decide something (index time, edges of windows and horizons),
and are written in every precision and with every offset; shapes, statuses, references and versions are drawn, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from spinney.study.study import Study
from tests.made_up import GLUCOSE, WEIGHT, write
from tests.oracle import fhir, groups, reference
from tests.oracle.events import NOW, Site
from tests.oracle.studies import ACTS, DRUGS, HABITS, ILLNESSES, PRESSURE, SMOKING, SYSTOLIC, make_study

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Auckland")
TURNS = (
    datetime(2023, 3, 26, 1, tzinfo=UTC),
    datetime(2023, 10, 29, 1, tzinfo=UTC),
    datetime(2023, 3, 12, 7, tzinfo=UTC),
)
"""Clocks are put forward or back around these."""
STATUSES = {
    kind: words.split()
    for kind, words in {
        "Observation": "registered preliminary final amended corrected cancelled entered-in-error unknown",
        "Encounter": "planned arrived in-progress onleave finished cancelled entered-in-error unknown",
        "Procedure": "preparation in-progress not-done on-hold stopped completed entered-in-error unknown",
        "MedicationRequest": "active on-hold cancelled completed entered-in-error stopped draft unknown",
        "MedicationAdministration": "in-progress not-done on-hold completed entered-in-error stopped unknown",
        "MedicationStatement": "active completed entered-in-error intended stopped on-hold unknown not-taken",
        "Immunization": "completed entered-in-error not-done",
    }.items()
}
USUAL = {"Observation": "final", "Encounter": "finished", "MedicationRequest": "active"}
VERIFIED = ("unconfirmed", "provisional", "differential", "confirmed", "refuted", "entered-in-error")
INTENTS = ("proposal", "plan", "order", "original-order", "reflex-order", "filler-order", "instance-order", "option")

Resource = dict[str, Any]


@dataclass(frozen=True)
class FhirCase:
    """Resources in files."""

    study: Study
    timezone: str
    resources: list[Resource]

    def told(self) -> reference.Expected:
        site = Site(self.timezone)
        people = fhir.people_of(self.resources, site)
        members = groups.of_resources(self.resources, site)
        return reference.table(self.study, people, fhir.events_of(self.resources, site), site, members)

    def laid(self, folder: Path) -> Resource:
        return {"kind": "files", "path": write(folder / "fhir", self.resources)}


class Records:
    """Draws one case."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.timezone = self.chance.choice(ZONES)
        self.moments: list[datetime] = []
        self.number = 0
        self.drugs: list[Resource] = []

    def case(self) -> FhirCase:
        chance = self.chance
        study = make_study(chance)
        resources = [self.patient(f"P{n}" if n % 2 else f"p{n - n % 3}.{n}") for n in range(chance.randint(4, 9))]
        for person in list(resources):
            resources += self.life(person)
        resources += [*self.drugs, *self.ripener()]
        resources += [self.version(one) for one in resources if chance.random() < 0.06]
        resources += [one for one in resources if chance.random() < 0.04]  # delivered twice
        chance.shuffle(resources)
        return FhirCase(study, self.timezone, resources)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    # ---- times

    def turn(self) -> datetime:
        """A moment of the year that a stay begins or ends at."""
        if self.often(0.2):
            return self.chance.choice(TURNS) + timedelta(minutes=self.chance.randint(-90, 90))
        day = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(days=self.chance.randint(0, 330))
        return day + timedelta(minutes=self.chance.choice((0, 0, 600, 630, 1380, self.chance.randint(0, 1439))))

    def moment(self) -> datetime:
        """One that matters, or one close to it."""
        if self.often(0.02):
            return NOW + timedelta(days=self.chance.randint(1, 9000))  # a typing error, or a shifted date
        near = self.chance.choice(self.moments)
        far = self.chance.choice(
            (0, 0, -1, 1, -12, 12, -24, 24, -48, 48, -720, 720, -8760, self.chance.randint(-900, 900))
        )
        second = self.chance.choice((0, 0, 0, 1, -1, 3600))
        return near + timedelta(hours=far, seconds=second)

    def instant(self, moment: datetime) -> str:
        offset = timedelta(minutes=self.chance.choice((0, 0, 0, 60, 120, -300, 330, -210, 840)))
        text = (moment.replace(tzinfo=None) + offset).isoformat(
            timespec=self.chance.choice(("seconds", "milliseconds"))
        )
        sign, minutes = ("-" if offset < timedelta(0) else "+"), abs(int(offset.total_seconds())) // 60
        return text + ("Z" if not minutes else f"{sign}{minutes // 60:02d}:{minutes % 60:02d}")

    def written(self, moment: datetime, coarse: float = 0.35) -> str:
        if self.often(coarse):
            day = moment.astimezone(ZoneInfo(self.timezone)).date().isoformat()
            return day[: self.chance.choice((10, 10, 10, 10, 10, 7, 4))]
        return self.instant(moment)

    # ---- pieces

    def id(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    def about(self, who: str) -> Resource:
        if self.often(0.02):
            return {"reference": "Group/all"}
        server, history = "https://fhir.example.org/r4/", "/_history/2"
        form = self.chance.choice(
            ("Patient/{}", "Patient/{}", server + "Patient/{}", "Patient/{}" + history, "urn:uuid:{}")
        )
        return {"reference": form.format(who)}

    def concept(self, codes: Sequence[str], more: float = 0.35) -> Resource:
        """One of the codes, maybe behind or before another of them or one that nobody asks for."""
        words = [self.chance.choice(codes)]
        if self.often(more):
            words.insert(self.chance.randint(0, 1), self.chance.choice((*codes, "local|77")))
        pieces = []
        for word in dict.fromkeys(words):
            system, _, code = word.partition("|")
            pieces.append({"system": system, "code": code} if code else {})
        return {"coding": [piece for piece in pieces if piece]}

    def when(self, name: str, moment: datetime) -> Resource:
        """An element as a dateTime or a Period."""
        if self.often(0.25):
            last = moment + timedelta(hours=self.chance.choice((0, 1, 24, 30, 72)))
            return {
                f"{name}Period": {
                    "start": self.written(moment),
                    **({"end": self.written(last)} if self.often(0.8) else {}),
                }
            }
        return {f"{name}DateTime": self.written(moment)}

    def status(self, kind: str, odd: float = 0.2) -> str:
        return self.chance.choice(STATUSES[kind]) if self.often(odd) else USUAL.get(kind, "completed")

    def patient(self, name: str) -> Resource:
        one = {"resourceType": "Patient", "id": name, "gender": self.chance.choice(("female", "male", "other"))}
        if self.often(0.9):
            one["birthDate"] = (
                f"{self.chance.randint(1930, 2008)}-{self.chance.choice(('02-29', '05-17', '01-01', '12-31'))}"
            )
            if one["birthDate"].endswith("02-29") and int(one["birthDate"][:4]) % 4:
                one["birthDate"] = one["birthDate"][:4] + "-03-01"
        return one

    def version(self, one: Resource) -> Resource:
        """Another version of it, newer or older; the dates are in different offsets."""
        other = {**one}
        if "status" in one and one["resourceType"] in STATUSES:
            other["status"] = self.chance.choice(STATUSES[one["resourceType"]])
        if "valueQuantity" in one:
            other["valueQuantity"] = {**one["valueQuantity"], "value": 33.25}
        first, second = (
            "2023-06-01T00:30:00+02:00",
            self.chance.choice(("2023-05-31T22:00:00Z", "2023-05-31T23:00:00Z")),
        )
        one["meta"], other["meta"] = {"lastUpdated": first}, {"lastUpdated": second}
        return other

    # ---- a life

    def life(self, person: Resource) -> list[Resource]:
        who, self.moments, found = person["id"], [], []
        for _ in range(self.chance.randint(1, 4)):
            start = self.chance.choice(self.moments) if self.moments and self.often(0.3) else self.turn()
            start += timedelta(days=self.chance.choice((0, 0, 1, 7, 30)))
            end = start + timedelta(hours=self.chance.choice((0, 1, 5, 24, 30, 100, 240)))
            self.moments += [start, end]
            found += [self.stay(who, start, end) for _ in range(1 + self.often(0.1))]
        if self.often(0.35):
            died = self.chance.choice(self.moments) + timedelta(
                hours=self.chance.choice((0, 0, 1, 5, 24, 200, 720, 721))
            )
            person["deceasedDateTime"] = self.written(died, 0.6)
        elif self.often(0.1):
            person["deceasedBoolean"] = self.chance.choice((True, False))
        stays = [one for one in found if one["resourceType"] == "Encounter"]
        makers: tuple[Callable[[str, list[Resource]], Resource], ...] = (
            self.weight, self.weight, self.sugar, self.habit, self.pressure,
            self.illness, self.illness, self.order, self.order, self.gift, self.said, self.act, self.jab, self.allergy,
        )  # fmt: skip
        for _ in range(self.chance.randint(8, 30)):
            one = self.chance.choice(makers)(who, stays)
            found.append(one)
            if self.often(0.15):  # the same again, an event of its own
                found.append({**one, "id": self.id("again")})
        return found

    def ripener(self) -> list[Resource]:
        """Somebody's late visit: outcomes before it are known."""
        if self.often(0.15):
            return []
        visit = {"resourceType": "Encounter", "id": "late", "status": "finished", "class": {"code": "AMB"}}
        return [
            {
                **visit,
                "subject": {"reference": "Patient/zoe"},
                "period": {"start": "2023-12-20T10:00:00Z", "end": "2023-12-20T11:00:00Z"},
            }
        ]

    def stay(self, who: str, start: datetime, end: datetime) -> Resource:
        coarse = self.chance.choice((0.0, 0.0, 1.0, 0.3))
        period = {"start": self.written(start, coarse)}
        if self.often(0.92):
            period["end"] = self.written(end, coarse)
        code = self.chance.choice(("IMP", "IMP", "IMP", "AMB", "EMER"))
        new = self.often(0.15)  # as in R5
        return {
            "resourceType": "Encounter",
            "id": self.id("e"),
            "status": self.status("Encounter", 0.15),
            "class": [{"coding": [{"code": code}]}] if new else {"code": code},
            "type": [self.concept(("sct|ward", "sct|clinic"))] if self.often(0.5) else [],
            "subject": self.about(who),
            "actualPeriod" if new else "period": period,
        }

    def observation(self, who: str, code: Resource, **value: Any) -> Resource:
        moment = self.moment()
        one = {
            "resourceType": "Observation",
            "id": self.id("o"),
            "status": self.status("Observation"),
            "code": code,
            "subject": self.about(who),
        }
        one |= {"effectiveInstant": self.instant(moment)} if self.often(0.05) else self.when("effective", moment)
        if self.often(0.3):
            one["issued"] = self.instant(moment + timedelta(hours=self.chance.choice((0, 0, 1, 24, 300))))
        if self.often(0.02):
            del one[next(name for name in one if name.startswith("effective"))]
        return one | value

    def quantity(self, value: float, *units: str) -> Resource:
        found: Resource = {"value": value, self.chance.choice(("code", "code", "unit")): self.chance.choice(units)}
        if self.often(0.12):
            found["comparator"] = self.chance.choice(("<", "<=", ">", ">="))
        return {} if self.often(0.05) else {"valueQuantity": found}

    def weight(self, who: str, _: list[Resource]) -> Resource:
        value = self.chance.choice((70, 70.5, 71.25, self.chance.uniform(40, 120)))
        return self.observation(
            who, self.concept((WEIGHT,)), **self.quantity(value, "kg", "kg", "kg", "g", "[lb_av]", "furlong")
        )

    def sugar(self, who: str, _: list[Resource]) -> Resource:
        value = self.chance.choice((5, 90, self.chance.uniform(3, 200)))
        return self.observation(
            who, self.concept((GLUCOSE, "lab|GLU")), **self.quantity(value, "mg/dL", "mg/dL", "mmol/L")
        )

    def habit(self, who: str, _: list[Resource]) -> Resource:
        word = self.chance.choice(HABITS)
        value = (
            {"valueString": word}
            if "|" not in word or self.often(0.1)
            else {"valueCodeableConcept": self.concept((word,), 0.5)}
        )
        return self.observation(who, self.concept((SMOKING,)), **value)

    def pressure(self, who: str, _: list[Resource]) -> Resource:
        parts = [
            {"code": self.concept((SYSTOLIC,)), **self.quantity(value, "mm[Hg]")}
            for value in (131, 118)[: self.chance.randint(1, 2)]
        ]
        return self.observation(who, self.concept((PRESSURE,)), component=parts)

    def illness(self, who: str, stays: list[Resource]) -> Resource:
        one = {
            "resourceType": "Condition",
            "id": self.id("c"),
            "code": self.concept(ILLNESSES),
            "subject": self.about(who),
        }
        dated = self.chance.choice(("onset", "recorded", "both", "stay", "stay", "age"))
        if dated in ("onset", "both"):
            one |= self.when("onset", self.moment())
        if dated == "age":
            one["onsetAge"] = {"value": 50, "code": "a"}
        if dated in ("recorded", "both"):
            one["recordedDate"] = self.written(self.moment())
        if stays and (dated == "stay" or self.often(0.3)):
            one["encounter"] = {"reference": f"Encounter/{self.chance.choice(stays)['id']}"}
        if self.often(0.5):
            words = (
                self.chance.sample(VERIFIED, 2)
                if self.often(0.3)
                else [self.chance.choice((*VERIFIED, "confirmed", "confirmed"))]
            )
            one["verificationStatus"] = {"coding": [{"system": "ver", "code": word} for word in words]}
        return one

    def drug(self, name: str = "medication") -> Resource:
        """What is given: written out, contained, elsewhere, or as R5 writes it."""
        concept, how = (
            self.concept(DRUGS),
            self.chance.choice(("concept", "concept", "contained", "elsewhere", "elsewhere", "new")),
        )
        if how == "concept":
            return {f"{name}CodeableConcept": concept}
        if how == "new":
            return {name: {"concept": concept}}
        made = {"resourceType": "Medication", "id": self.id("drug")}
        made |= {"ingredient": [{"itemCodeableConcept": concept}]} if self.often(0.4) else {"code": concept}
        if how == "contained":
            return {"contained": [made], f"{name}Reference": {"reference": f"#{made['id']}"}}
        self.drugs.append(made)
        return {f"{name}Reference": {"reference": f"Medication/{made['id']}"}}

    def order(self, who: str, _: list[Resource]) -> Resource:
        one = {
            "resourceType": "MedicationRequest",
            "id": self.id("m"),
            "status": self.status("MedicationRequest"),
            "subject": self.about(who),
        }
        one |= {
            "intent": self.chance.choice(INTENTS) if self.often(0.3) else "order",
            "authoredOn": self.written(self.moment()),
            **self.drug(),
        }
        return one | ({"doNotPerform": self.often(0.7)} if self.often(0.2) else {})

    def gift(self, who: str, _: list[Resource]) -> Resource:
        one = {
            "resourceType": "MedicationAdministration",
            "id": self.id("g"),
            "status": self.status("MedicationAdministration"),
            "subject": self.about(who),
        }
        return one | self.drug() | self.when(self.chance.choice(("effective", "effective", "occurence")), self.moment())

    def said(self, who: str, _: list[Resource]) -> Resource:
        one = {
            "resourceType": "MedicationStatement",
            "id": self.id("s"),
            "status": self.status("MedicationStatement"),
            "subject": self.about(who),
        }
        asserted = {"dateAsserted": self.written(self.moment())} if self.often(0.4) else {}
        return (
            one
            | self.drug()
            | (asserted if asserted and self.often(0.3) else self.when("effective", self.moment()) | asserted)
        )

    def act(self, who: str, _: list[Resource]) -> Resource:
        one = {
            "resourceType": "Procedure",
            "id": self.id("a"),
            "status": self.status("Procedure"),
            "code": self.concept(ACTS),
            "subject": self.about(who),
        }
        return one | self.when(self.chance.choice(("performed", "performed", "occurrence")), self.moment())

    def jab(self, who: str, _: list[Resource]) -> Resource:
        one = {
            "resourceType": "Immunization",
            "id": self.id("j"),
            "status": self.status("Immunization", 0.4),
            "vaccineCode": self.concept(("cvx|140",)),
        }
        recorded = {"recorded": self.written(self.moment())} if self.often(0.3) else {}
        return one | {"patient": self.about(who), "occurrenceDateTime": self.written(self.moment())} | recorded

    def allergy(self, who: str, _: list[Resource]) -> Resource:
        one = {
            "resourceType": "AllergyIntolerance",
            "id": self.id("l"),
            "code": self.concept(("sct|peanut",)),
            "patient": self.about(who),
        }
        if self.often(0.5):
            one["verificationStatus"] = {
                "coding": [
                    {"system": "ver", "code": self.chance.choice(("unconfirmed", "presumed", "confirmed", "refuted"))}
                ]
            }
        return one | {"recordedDate": self.written(self.moment())}
