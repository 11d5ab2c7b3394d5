"""How small and how large the values of a variable were, as the agents of FAIR4Health told."""

from __future__ import annotations

from typing import Any, TypeGuard

from spinney.connectors.fair4health.documents import Block, blocks, member_text

LARGEST = 1e12
Ranges = dict[tuple[str, str], tuple[float, float]]


def ranges_of(content: Any) -> Ranges:
    """By query and FHIRPath, from the statistics of all agents; 0 is always in it, since there nothing is 0."""
    found: Ranges = {}
    for block in blocks(content):
        variable, low, high = block.get("variable"), block.get("min_value"), block.get("max_value")
        if isinstance(variable, Block) and _is_number(low) and _is_number(high):
            key = key_of(variable)
            lowest, highest = found.get(key, (0.0, 0.0))
            found[key] = min(lowest, low, high), max(highest, low, high)
    return {key: (low, high) for key, (low, high) in found.items() if low < high}


def key_of(variable: Block) -> tuple[str, str]:
    """What tells variables apart: in statistics their names have no spaces."""
    return member_text(variable, "fhir_query"), member_text(variable, "fhir_path")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
