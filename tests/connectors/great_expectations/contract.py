"""A study with every sort of rule, and a table that keeps them all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from spinney.study.study import Study

ROWS = 60
CANARY = 77777.125
CANARY_WORD = "canary-sees-everything"


RULES = [
    {"name": "diastolic below systolic", "column": "diastolic", "comparison": "<", "than": "systolic"},
    {"name": "pulse is not 80", "column": "pulse", "comparison": "!=", "than": 80, "mostly": 0.5},
    {"name": "adults", "column": "age", "comparison": ">=", "than": 18, "severity": "critical"},
]


def number(name: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    source = {"kind": "Observation", "codes": [f"s|{name}"], "statistic": "last"}
    return {"name": name, "kind": "continuous", "range": [low, high], "source": source, **more}


STUDY = Study.model_validate(
    {
        "name": "contract",
        "features": [
            number("age", 0, 120) | {"source": {"patient": "age"}},
            {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}},
            number("systolic", 50, 250, unit="mm[Hg]"),
            number("diastolic", 30, 150),
            number("pulse", 30, 220),
            {
                "name": "smoker",
                "kind": "binary",
                "source": {"kind": "Condition", "codes": ["s|smoker"], "statistic": "exists"},
            },
        ],
        "label": {"name": "died", "source": {"outcome": "death", "horizon": "8h"}},
        "cohort": {
            "index": {"kind": "Encounter"},
            "quality": {"largest_missing": {"pulse": 0.1}, "largest_quarantine": 0.02, "rules": RULES},
        },
        "privacy": {"smallest_cohort": 30},
    }
)


def good() -> dict[str, list[Any]]:
    """A table that keeps every rule."""
    return {
        "patient": [f"p{row}" for row in range(ROWS)],
        "index_time": [1_600_000_000_000_000 + row for row in range(ROWS)],
        "age": [20.0 + row for row in range(ROWS)],
        "sex": ["female", "male"] * (ROWS // 2),
        "systolic": [120.0 + row for row in range(ROWS)],
        "diastolic": [70.0 + row / 2 for row in range(ROWS)],
        "pulse": [60.0 + row for row in range(ROWS)],
        "smoker": [0.0, 1.0] * (ROWS // 2),
        "died": [0, 0, 1] * (ROWS // 3),
    }


def table(**changed: list[Any]) -> pa.Table:
    columns = {**good(), **changed}
    times = pa.array(columns.pop("index_time"), pa.timestamp("us"))
    return pa.table({"patient": columns.pop("patient"), "index_time": times, **columns})


def first(values: list[Any], *instead: Any) -> list[Any]:
    """A column whose first rows are others."""
    return [*instead, *values[len(instead) :]]


@dataclass
class Counts:
    read: Counter[str] = field(default_factory=lambda: Counter(Observation=1000))
    usable: dict[str, int] = field(default_factory=lambda: {"Observation": 1000})
    quarantined: Counter[tuple[str, str]] = field(default_factory=Counter)


GOOD = good()
