"""How few patients are too few to be told of on a page, whatever a study says."""

from __future__ import annotations

FEWEST = 5


def few(count: int) -> str:
    """A handful of patients is told as a handful."""
    return f"{count:,}" if count == 0 or count >= FEWEST else f"fewer than {FEWEST}"
