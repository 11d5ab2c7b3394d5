"""Made-up FHIR resources of any number for benchmarks/connectors.py, and the study that is asked of them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

from spinney.study.study import Study

OBSERVATIONS_PER_PATIENT = 100
STAYS_PER_PATIENT = 4
LOINC = "http://loinc.org"
FIRST_DAY = datetime(2016, 1, 1)
DAYS = 1800
META = '"meta":{"versionId":"1","lastUpdated":"2021-01-01T00:00:00.000+00:00"}'
CODES = {
    "8480-6": ("mm[Hg]", 120, 15),
    "8462-4": ("mm[Hg]", 80, 10),
    "8867-4": ("/min", 75, 12),
    "29463-7": ("kg", 78, 14),
    "9279-1": ("/min", 15, 2),
    "2339-0": ("mg/dL", 100, 25),
    "38483-4": ("mg/dL", 1.1, 0.3),
    "2947-0": ("mmol/L", 140, 4),
    "6298-4": ("mmol/L", 4.2, 0.5),
    "718-7": ("g/dL", 14, 1.5),
}
WINDOWS = {"slope": 730, "std": 730, "p90": 730}
STATISTICS = {
    "8480-6": ("last", "slope"),
    "8462-4": ("last",),
    "8867-4": ("mean", "std"),
    "29463-7": ("last",),
    "9279-1": ("max",),
    "2339-0": ("median", "p90"),
    "38483-4": ("last", "max"),
    "2947-0": ("min",),
    "6298-4": ("last",),
    "718-7": ("count", "mean"),
}
RECIPES = [(code, statistic, WINDOWS.get(statistic, 365)) for code, every in STATISTICS.items() for statistic in every]

STUDY = Study.model_validate(
    {
        "name": "bench",
        "cohort": {"index": {"kind": "Encounter", "classes": ["IMP"], "at": "end"}},
        "label": {"name": "readmitted", "source": {"outcome": "index-event", "horizon": "90d"}},
        "features": [
            {
                "name": f"{statistic}_{code}",
                "kind": "continuous",
                "range": [-1000, 1000],
                "unit": None if statistic == "count" else CODES[code][0],
                "source": {
                    "kind": "Observation",
                    "codes": [f"{LOINC}|{code}"],
                    "statistic": statistic,
                    "window": f"{days}d",
                },
            }
            for code, statistic, days in RECIPES
        ],
    }
)


def wide_study(features: int) -> Study:
    """The same question with very many features: every code, statistic and a window of its own."""
    statistics = ("last", "first", "mean", "median", "min", "max", "slope", "std", "delta", "p10", "p90", "count")
    pairs = [(code, statistic) for statistic in statistics for code in CODES]
    wide = []
    for number in range(features):
        code, statistic = pairs[number % len(pairs)]
        events = {"kind": "Observation", "codes": [f"{LOINC}|{code}"], "statistic": statistic}
        wide.append(
            {
                "name": f"x{number}",
                "kind": "continuous",
                "range": [-1000, 1000],
                "source": {**events, "window": f"{90 + number // len(pairs)}d"},
            }
        )
    return Study.model_validate({**STUDY.model_dump(mode="json"), "features": wide})


def make(folder: Path, observations: int) -> None:
    """Write Patient, Encounter and Observation files; the same number gives the same files."""
    folder.mkdir(parents=True)
    chance = random.Random(7)  # noqa: S311 (made-up data)
    patients = max(observations // OBSERVATIONS_PER_PATIENT, 1)
    with (folder / "Patient.ndjson").open("w") as file:
        for patient in range(patients):
            file.write(
                f'{{"resourceType":"Patient","id":"{_patient(patient)}",{META},"gender":"female",'
                f'"birthDate":"1960-05-17"}}\n'
            )
    with (folder / "Encounter.ndjson").open("w") as file:
        for patient in range(patients):
            for stay in range(STAYS_PER_PATIENT):
                start = FIRST_DAY + timedelta(days=chance.randrange(DAYS), minutes=chance.randrange(1440))
                file.write(_encounter(patient, stay, start, start + timedelta(hours=12 + chance.randrange(200))) + "\n")
    with (folder / "Observation.ndjson").open("w") as file:
        names = list(CODES)
        for number in range(observations):
            code = names[chance.randrange(len(names))]
            unit, middle, spread = CODES[code]
            when = FIRST_DAY + timedelta(seconds=chance.randrange(DAYS * 86_400))
            file.write(_observation(number, code, unit, round(chance.gauss(middle, spread), 1), when) + "\n")


def _patient(number: int) -> str:
    return f"{number:08d}-af01-4f2f-b74a-1ec7d0368f93"


def _encounter(patient: int, stay: int, start: datetime, end: datetime) -> str:
    return (
        f'{{"resourceType":"Encounter","id":"{patient:08d}-{stay}",{META},"status":"finished","class":{{"code":"IMP"}},'
        f'"type":[{{"coding":[{{"system":"http://snomed.info/sct","code":"183452005"}}]}}],'
        f'"subject":{{"reference":"Patient/{_patient(patient)}"}},'
        f'"period":{{"start":"{start.isoformat()}+00:00","end":"{end.isoformat()}+00:00"}}}}'
    )


def _observation(number: int, code: str, unit: str, value: float, when: datetime) -> str:
    time = when.isoformat()
    return (
        f'{{"resourceType":"Observation","id":"{number:012d}-4353-4d7e-96e0-c980387b3852",'
        f'{META},"status":"final",'
        f'"category":[{{"coding":[{{"system":"http://terminology.hl7.org/CodeSystem/observation-category",'
        f'"code":"vital-signs","display":"vital-signs"}}]}}],'
        f'"code":{{"coding":[{{"system":"{LOINC}","code":"{code}","display":"Measured"}}],"text":"Measured"}},'
        f'"subject":{{"reference":"Patient/{_patient(number // OBSERVATIONS_PER_PATIENT)}"}},'
        f'"encounter":{{"reference":"Encounter/b940a0ec-50c7-4f55-ad50-3da921d76137"}},'
        f'"effectiveDateTime":"{time}+00:00","issued":"{time}.139+00:00",'
        f'"valueQuantity":{{"value":{value},"unit":"{unit}","system":"http://unitsofmeasure.org","code":"{unit}"}}}}'
    )
