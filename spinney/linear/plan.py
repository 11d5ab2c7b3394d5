"""Which way to fit an epoch's patients allow: the more numbers are opened about few rows, the more can be solved for.

All numbers that are opened in an epoch are counted, moments among them, against training rows times columns. Below that
limit gradients and curvatures may be summed step by step; where it leaves too few steps, one round of least squares is
tried; else there is no common fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from spinney.linear.fit import MOST_STEPS, numbers

FEWEST_STEPS = 4
FEWEST_ROWS_PER_COLUMN = 3
STEPWISE, ONE_ROUND, NONE = "stepwise", "one-round", ""


@dataclass(frozen=True)
class Plan:
    """The way, how many sums it may open at most, and how many numbers there may be in all."""

    way: str
    sums: int
    limit: int
    reason: str = ""  # why there is none

    @classmethod
    def of(cls, rows: float, columns: int, opened: int, share: float) -> Plan:
        """By all training rows, design columns, numbers that are open already, and the share that may be."""
        limit = int(share * rows * columns)
        each = numbers(columns)
        steps = (limit - opened) // each if columns else 0
        if not columns:
            return cls(NONE, 0, limit, "no column differs among all rows")
        if rows < FEWEST_ROWS_PER_COLUMN * columns:
            return cls(NONE, 0, limit, f"{rows:,.0f} rows are too few for {columns} columns")
        if steps >= FEWEST_STEPS:
            return cls(STEPWISE, min(steps, MOST_STEPS), limit)
        if opened + each + 1 <= limit:
            return cls(ONE_ROUND, 1, limit)
        told = f"even one round would open {opened + each + 1:,} numbers"
        return cls(NONE, 0, limit, f"{told}, more than the limit of {limit:,}")
