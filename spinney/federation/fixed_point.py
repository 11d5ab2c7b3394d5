"""Real numbers as whole ones, so that secure sums of them are exact and the same on every machine.

A row adds something between `low` and `high` to each cell. With the rows of all sites together, that says between which
numbers a total lies, and so how many binary digits after the point fit into 64 bits: a sum that overflows can't be
written down. A site's part is held to what its own rows can add, and a total outside what all rows can add is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused, RoundVoid
from spinney.federation.secure_sum import Counts

Floats = NDArray[np.float64]

DIGITS = 36
ROOM_BITS = 62  # totals stay below half of what a signed number of 64 bits holds
FEWEST_DIGITS = 8
MOST_ROWS = 2**40


@dataclass(frozen=True)
class FixedPoint:
    """How sums over at most `rows` rows are written, of which each adds `low` to `high` to every cell."""

    low: float
    high: float
    rows: int
    digits: int = DIGITS  # at most; fewer where so many would not fit

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= 0 <= self.high):
            raise ValueError("a row adds something between a number up to 0 and a number from 0 on")
        if not 1 <= self.rows <= MOST_ROWS:
            raise Refused(f"a sum is over 1 to {MOST_ROWS:,} rows, not {self.rows:,}")
        if self.places < FEWEST_DIGITS:
            raise Refused(f"{self.rows:,} rows of up to {max(-self.low, self.high):g} leave too few digits")

    @property
    def places(self) -> int:
        """Binary digits after the point: as many as are wanted, or as fit."""
        largest = math.ceil(max(-self.low, self.high, 1.0) * self.rows)
        return min(self.digits, ROOM_BITS - largest.bit_length())

    def limits(self, rows: int) -> tuple[int, int]:
        """Between which whole numbers the sum over so many rows lies."""
        unit = 1 << self.places
        return math.floor(self.low * rows * unit), math.ceil(self.high * rows * unit)

    def whole(self, sums: Floats, rows: int) -> Counts:
        """A site's sums over its own rows; ValueError if they can't be, which is a mistake of this program."""
        if not 0 <= rows <= self.rows:
            raise Refused(f"{rows:,} rows of one site are more than all have together, {self.rows:,}")
        least, most = self.limits(rows)
        written = np.rint(np.asarray(sums, dtype=np.float64) * float(1 << self.places))
        slack = 1e-9 * max(-least, most) + 1  # what adding up in floating point may be off
        if not np.all(np.isfinite(written)) or np.any(written < least - slack) or np.any(written > most + slack):
            raise ValueError("a sum is larger than its rows allow")
        return np.asarray(np.clip(written, least, most).astype(np.int64))

    def real(self, total: Counts) -> Floats:
        """What a total stands for; the sum is void if it can't be: a site lied, or masks did not cancel."""
        least, most = self.limits(self.rows)
        impossible = int(np.count_nonzero((total < least) | (total > most)))
        if impossible:
            raise RoundVoid(
                f"{impossible} of {total.size} sums are outside what {self.rows:,} rows can add up to: an answer or a "
                "released seed was wrong"
            )
        return np.asarray(total / float(1 << self.places))
