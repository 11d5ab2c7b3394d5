"""Studies of whatever some resources hold: the codes, units and words that are there, in any combination."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spinney.study.study import Study
from tests.oracle import fhir
from tests.oracle.events import Event, Site
from tests.oracle.records import FhirCase
from tests.oracle.studies import COUNTING, STATISTICS, WINDOWS

Words = dict[str, Any]


@dataclass(frozen=True)
class Codes:
    """How often each code of a kind occurs, with which unit, and which coded values it has."""

    often: dict[str, Counter[str]]
    units: dict[str, Counter[str | None]]
    words: dict[str, Counter[str]]


def look(events: Sequence[Event]) -> Codes:
    found = Codes({}, {}, {})
    for one in events:
        for code in one.codes:
            found.often.setdefault(one.kind, Counter())[code] += 1
            if one.number is not None:
                found.units.setdefault(code, Counter())[one.unit] += 1
            for word in one.words[:1]:
                found.words.setdefault(code, Counter())[word] += 1
    return found


def study_of(codes: Codes, chance: random.Random, index: Words) -> Study:
    """A study of twelve features."""
    features: list[Words] = [
        {"name": "age", "kind": "continuous", "range": [0, 130], "source": {"patient": "age"}},
        {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}},
    ]
    while len(features) < 12:
        features.append(_feature(codes, chance, f"x{len(features)}"))
    outcome = chance.choice(("index-event", "death", "event"))
    label: Words = {"outcome": outcome, "horizon": chance.choice(("30d", "365d"))}
    if outcome == "event":
        label["events"] = _events(codes, chance)
    source = {"name": "outcome", "source": label}
    return Study.model_validate({"name": "found", "features": features, "label": source, "cohort": {"index": index}})


def _events(codes: Codes, chance: random.Random) -> Words:
    kind = chance.choice(sorted(codes.often))
    common = [code for code, _ in codes.often[kind].most_common(12) if not code.startswith("|")]
    return {"kind": kind, "codes": chance.sample(common, min(len(common), chance.randint(0, 3)))}


def _feature(codes: Codes, chance: random.Random, name: str) -> Words:
    window = chance.choice((*WINDOWS, "3650d"))
    how = _events(codes, chance) | ({"window": window} if window else {})
    feature: Words = {"name": name, "kind": "continuous", "range": [-1e12, 1e12]}
    measured = [code for code in how["codes"] if code in codes.units]
    coded = [code for code in how["codes"] if code in codes.words]
    if measured and chance.random() < 0.8:
        unit = codes.units[measured[0]].most_common(1)[0][0]
        how |= {"codes": measured[:1], "statistic": chance.choice(STATISTICS)}
        if how["statistic"] == "slope" and unit:
            how["unit"] = unit
        return feature | {"unit": None if how["statistic"] in (*COUNTING, "slope") else unit, "source": how}
    if coded:
        how |= {"codes": coded[:1], "value": "text", "statistic": chance.choice(("last", "first"))}
        categories = [word for word, _ in codes.words[coded[0]].most_common(4)]
        return {"name": name, "kind": "categorical", "categories": categories, "source": how}
    return feature | {"source": how | {"statistic": chance.choice(COUNTING)}}


def cases(resources: list[Words], studies: int, index: Words, timezone: str = "UTC") -> list[FhirCase]:
    """That many studies of the same resources."""
    codes = look(fhir.events_of(resources, Site(timezone)))
    return [FhirCase(study_of(codes, random.Random(seed), index), timezone, resources) for seed in range(studies)]
