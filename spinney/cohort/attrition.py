"""The way from a source to the rows that train: how many index events each rule leaves out, and of how many patients.

Every index event is lost at one step at most, the first whose rule it breaks. A patient is lost where the last of their
index events is. So what is left after a step is what comes out at the end and all that is lost after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.rows.parts import Part, Parts

ASIDE = "validation, test and newest"


@dataclass(frozen=True)
class Loss:
    """What one step leaves out."""

    reason: str
    events: int | None
    """Index events; None: they can't be compared with what is left."""
    patients: int
    """Patients of whom nothing is left after it."""
    touched: int
    """Patients of whom something is left out by it; they may have other index events."""


@dataclass(frozen=True)
class Attrition:
    """All losses in their order, and what comes out: rows whose outcome is known."""

    source: str
    """The kind of the index events, such as Encounter; empty: a finished table, which has a row for each."""
    losses: tuple[Loss, ...]
    rows: int
    patients: int

    @property
    def rules(self) -> tuple[Loss, ...]:
        """What the rules of the study leave out, those that leave out nobody as well."""
        return self.losses[1:-1] if self.source else ()

    @property
    def index_events(self) -> int:
        """How many there are before the first rule."""
        return self.rows + sum(loss.events or 0 for loss in self.losses[bool(self.source) :])

    @property
    def left_out(self) -> Counter[str]:
        """Reason -> index events that became no row."""
        found: Counter[str] = Counter()
        for loss in self.rules:
            found[loss.reason] += loss.events or 0
        return +found


@dataclass(frozen=True)
class PartCount:
    """How many of the rows whose outcome is known are in one part, and of how many patients."""

    name: str
    rows: int
    patients: int


@dataclass(frozen=True)
class Division:
    """How the rows whose outcome is known are divided."""

    parts: tuple[PartCount, ...]
    """Training, validation, test and newest; patients of the newest rows may be in another part, too."""
    aside: PartCount
    """All but training together."""
    patients: int

    @classmethod
    def of(cls, part: Parts, patients: NDArray[np.int64]) -> Division:
        """Of the part and the patient of every row."""

        def counted(name: str, rows: NDArray[np.bool_]) -> PartCount:
            return PartCount(name, int(np.count_nonzero(rows)), len(np.unique(patients[rows])))

        parts = tuple(counted(one.name.lower(), part == one) for one in Part)
        return cls(parts, counted(ASIDE, part != Part.TRAINING), len(np.unique(patients)))

    @property
    def training(self) -> int:
        """How many patients train."""
        return self.parts[Part.TRAINING].patients
