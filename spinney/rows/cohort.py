"""A site's patients as arrays. They are only ever in the house that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import CohortRejected
from spinney.rows.encode import Column, Matrix, columns_of, encode, encode_label, filled, times_of
from spinney.rows.parts import NO_TIMES, Part, Parts, newest_aside, newest_if_enough, parts_by_hash, parts_by_seed

if TYPE_CHECKING:
    from spinney.study.study import Study


@dataclass(frozen=True)
class Cohort:
    """Encoded rows, their labels, their patients and their parts."""

    columns: tuple[Column, ...]
    present: NDArray[np.bool_]
    X: Matrix
    y: NDArray[np.int8]
    patients: NDArray[np.int64]
    part: Parts
    fill: NDArray[np.float32] | None = None  # what stands for a missing value of each column; NaN: nothing
    no_newest: str = ""  # why no newest index events are kept aside, where the study leaves that open
    salt: str = ""  # the house's own, so that nobody else can repeat its draws

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, *parts: Part) -> Cohort:
        """Only the rows of some parts."""
        return self.where(np.isin(self.part, parts))

    def where(self, chosen: NDArray[np.bool_]) -> Cohort:
        """Only the rows that are chosen."""
        return self.at(np.flatnonzero(chosen))

    def at(self, places: NDArray[np.int64]) -> Cohort:
        """The rows at some places."""
        rows = {name: getattr(self, name)[places] for name in ("X", "y", "patients", "part")}
        return replace(self, **rows)

    def filled(self, fill: NDArray[np.float32]) -> Cohort:
        """The same rows with what is missing filled in."""
        return replace(self, X=filled(self.X, self.present, fill), fill=fill)

    @property
    def patient_count(self) -> int:
        """How many people the rows belong to."""
        return len(np.unique(self.patients))

    def patients_by_class(self) -> tuple[int, int]:
        """Patients with a negative row, patients with a positive row."""
        negative, positive = (len(np.unique(self.patients[self.y == label])) for label in (0, 1))
        return negative, positive


def cohort_from_frame(
    frame: Any, study: Study, patients: Sequence[str] | None = None, key: bytes = b"spinney"
) -> Cohort:
    """Encode a finished table. With patient identifiers the parts come from the keyed hash, else from the seed."""
    columns = columns_of(study.features)
    X, present = encode(frame, columns)
    y = encode_label(frame, study.label)
    codes, part, no_newest = divided(frame, y, study, patients, key)
    return Cohort(columns, present, X, y, codes, part, no_newest=no_newest)


def divided(
    frame: Any, y: NDArray[np.int8], study: Study, patients: Sequence[str] | None, key: bytes
) -> tuple[NDArray[np.int64], Parts, str]:
    """The patient and the part of every row, and why no newest rows are kept aside where they could be."""
    split = study.split
    if patients is None:
        codes, part = np.arange(len(y)), parts_by_seed(y, split)
    else:
        codes = np.unique(np.asarray(patients, dtype=str), return_inverse=True)[1]
        part = parts_by_hash(patients, key, split)
    if split.newest is not None:
        return codes, newest_aside(part, times_of(frame), split.newest) if split.newest else part, ""
    try:
        times = times_of(frame)
    except CohortRejected:  # nobody has asked for them
        return codes, part, NO_TIMES
    return codes, *newest_if_enough(part, times, y, codes, study.choice.fewest_test_patients)
