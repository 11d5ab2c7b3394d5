"""Studies that ask for a little of everything: any statistic over any window, any outcome, any horizon."""

from __future__ import annotations

import random
from typing import Any

from spinney.study.study import Study
from tests.made_up import GLUCOSE, WEIGHT

DRUGS, ACTS = ("atc|B01AB01", "atc|C07AB02"), ("ops|5-361", "ops|8-930")
ILLNESSES = ("icd|I50.9", "icd|N17.9", "sct|84114007")
SMOKING, HABITS = "http://loinc.org|72166-2", ("sct|never", "sct|former", "sct|current", "heavy smoker")
PRESSURE, SYSTOLIC = "http://loinc.org|85354-9", "http://loinc.org|8480-6"
COUNTING = ("count", "exists", "days-since")
STATISTICS = ("last", "first", "mean", "median", "min", "max", "slope", "std", "delta", "p10", "p90", *COUNTING)
WINDOWS = (None, "12h", "1d", "2d", "30d", "365d")
MEASURED = {"weight": (WEIGHT, "kg"), "sugar": (GLUCOSE, "mg/dL"), "pressure": (SYSTOLIC, "mm[Hg]")}
HAPPENED = (
    ("Condition", ILLNESSES),
    ("Condition", ILLNESSES),
    ("MedicationRequest", DRUGS),
    ("MedicationRequest", DRUGS),
    ("MedicationAdministration", DRUGS),
    ("MedicationStatement", DRUGS),
    ("Procedure", ACTS),
    ("Immunization", ("cvx|140",)),
    ("AllergyIntolerance", ("sct|peanut",)),
    ("Observation", (WEIGHT, PRESSURE, SYSTOLIC)),
)
MEANING = {"sct|never": "never", "sct|former": "former", "sct|current": "current", "heavy smoker": "current"}

Words = dict[str, Any]


def make_study(chance: random.Random) -> Study:
    """Features of every kind, with some statistic over some window each."""
    age = {"name": "age", "kind": "continuous", "range": [0, 130], "source": {"patient": "age"}}
    sex = {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}}
    features = [age, sex, *(_feature(chance, f"x{place}") for place in range(chance.randint(8, 14)))]
    return Study.model_validate(
        {
            "name": "nasty",
            "features": features,
            "label": {"name": "outcome", "source": _label(chance)},
            "cohort": _cohort(chance, str(features[-1]["name"])),
        }
    )


def _cohort(chance: random.Random, last: str) -> Words:
    index: Words = {"kind": "Encounter", "classes": ["IMP"], "at": chance.choice(("end", "end", "start"))}
    if chance.random() < 0.7:
        index["statuses"] = ["finished"]
    if chance.random() < 0.1:
        index = {"kind": "Procedure", "codes": [ACTS[0]]}
    eligible: Words = {"age": [18, 75]} if chance.random() < 0.3 else {}
    if chance.random() < 0.2:
        eligible["values"] = [last]
    since = {"since": "2023-03-01"} if chance.random() < 0.2 else {}
    return {"index": index, "eligible": eligible, "offset": chance.choice(("0h", "0h", "0h", "12h", "1d")), **since}


def _label(chance: random.Random) -> Words:
    outcome = chance.choice(("index-event", "index-event", "death", "event"))
    found: Words = {"outcome": outcome, "horizon": chance.choice(("8h", "1d", "30d", "90d"))}
    illness, stay = {"kind": "Condition", "codes": [ILLNESSES[0]]}, {"kind": "Encounter", "classes": ["EMER", "IMP"]}
    if outcome == "event":
        found["events"] = illness if chance.random() < 0.6 else stay
    return found


def _feature(chance: random.Random, name: str) -> Words:
    window = chance.choice(WINDOWS)
    how: Words = {"window": window} if window else {}
    kind, often = {"name": name, "kind": "continuous", "range": [-1e9, 1e9]}, chance.choice(("count", *COUNTING))
    what = chance.choice(("weight", "weight", "sugar", "pressure", "habit", "stay", "days", *["event"] * 6))
    if what == "habit":
        how |= {"value": "text", "statistic": chance.choice(("last", "first")), "meaning": MEANING}
        source = {"kind": "Observation", "codes": [SMOKING], **how}
        return {"name": name, "kind": "categorical", "categories": ["never", "former", "current"], "source": source}
    if what in MEASURED:
        return kind | _measured(chance, what, how)
    if what == "days":
        how |= {"kind": "Encounter", "value": "days", "statistic": chance.choice(("last", "max", "mean", "min"))}
    elif what == "stay":
        how |= {"kind": "Encounter", "classes": chance.choice(([], ["IMP"], ["EMER", "AMB"])), "statistic": often}
    else:
        of, codes = chance.choice(HAPPENED)
        how |= {"kind": of, "codes": list(codes[: chance.randint(0, len(codes))]), "statistic": often}
        if of == "Observation" and not how["codes"]:
            how["answers"] = ["never", "sct|former", "current", "sct|none"]
    return kind | {"source": how}


def _measured(chance: random.Random, what: str, how: Words) -> Words:
    (code, unit), statistic = MEASURED[what], chance.choice(STATISTICS)
    source = {"kind": "Observation", "codes": [code], "statistic": statistic, **how}
    if what == "sugar":
        source["molar_mass"] = 180.156
    if statistic == "slope":
        source["unit"] = unit
    return {"unit": None if statistic in (*COUNTING, "slope") else unit, "source": source}
