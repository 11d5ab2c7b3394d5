"""A small clinical definition, and a feature of it to change."""

from __future__ import annotations

from typing import Any


def study(**changes: Any) -> dict[str, Any]:
    return {
        "name": "s",
        "features": [
            {"name": "age", "kind": "continuous", "range": [0, 120], "source": {"patient": "age"}},
            {
                "name": "weight",
                "kind": "continuous",
                "range": [0, 300],
                "source": {"kind": "Observation", "codes": ["a|1"], "statistic": "last"},
            },
        ],
        "label": {"name": "dead", "source": {"outcome": "death", "horizon": "8h"}},
        "cohort": {"index": {"kind": "Encounter"}},
    } | changes


def weight(**source: Any) -> dict[str, Any]:
    return study()["features"][1] | {"source": {"kind": "Observation", "codes": ["a|1"], "statistic": "last"} | source}
