"""Who is in which part. The same patient is in the same part every night, with all of their rows.

What the study leaves open follows from the cohort: from `LARGE` patients on some that would train are kept for
choosing, and a tenth of the index events, the newest, for measuring how time goes by. Whatever moves when a cohort
grows past such a mark or its newest rows become old: rows of a test patient never train and never choose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from spinney.study.settings import Split

Parts = NDArray[np.int8]
UNKNOWN_TIME = np.iinfo(np.int64).min
LARGE = 20_000  # patients: fewer are better spent on training, and judged by cross-validation
VALIDATION_SHARE = 0.2  # of a large cohort's patients who are not in the test part
NEWEST_SHARE = 0.1
NO_TIMES = "the rows have no index times"


class Part(IntEnum):
    """Training grows, validation chooses, test only measures; the newest index events measure how time goes by."""

    TRAINING = 0
    VALIDATION = 1
    TEST = 2
    NEWEST = 3


def parts_by_hash(patients: Sequence[str], key: bytes, split: Split) -> Parts:
    """The part of every row from a keyed hash of its patient; the key never leaves the site."""
    people = set(patients)
    validation = _validation(split, len(people))
    part = {patient: _part_at(_position(patient, key), split.test, validation) for patient in people}
    return np.array([part[patient] for patient in patients], dtype=np.int8)


def parts_by_seed(y: NDArray[np.int8], split: Split) -> Parts:
    """For tables without patient identifiers: stratified by class, one row is one patient."""
    rng = np.random.default_rng([split.seed, 0x5EED])
    position, validation = np.empty(len(y)), _validation(split, len(y))
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        position[rows] = (rng.permutation(len(rows)) + rng.random()) / max(len(rows), 1)
    return np.array([_part_at(at, split.test, validation) for at in position], dtype=np.int8)


def newest_aside(part: Parts, times: NDArray[np.int64], share: float) -> Parts:
    """The newest rows as a part of their own; rows of one moment stay together, and rows without a time stay."""
    if not len(times):
        return part
    first = np.sort(times)[min(int(np.ceil(len(times) * (1 - share))), len(times) - 1)]
    return np.where((times >= first) & (times > UNKNOWN_TIME), np.int8(Part.NEWEST), part)


def unseen_newest(part: Parts, patients: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The newest rows of patients who have no row that trains or chooses."""
    known = patients[np.isin(part, (Part.TRAINING, Part.VALIDATION))]
    return np.asarray((part == Part.NEWEST) & ~np.isin(patients, known))


def newest_if_enough(
    part: Parts, times: NDArray[np.int64], y: NDArray[np.int8], patients: NDArray[np.int64], fewest: int
) -> tuple[Parts, str]:
    """A tenth of the rows, the newest, aside if that is enough to measure on; else the reason why none are."""
    if not np.any(times > UNKNOWN_TIME):
        return part, NO_TIMES
    aside = newest_aside(part, times, NEWEST_SHARE)
    if np.count_nonzero(aside == Part.NEWEST) > 2 * NEWEST_SHARE * len(part):
        return part, "too many index events share the newest moment"
    unseen = unseen_newest(aside, patients)
    found = min(len(np.unique(patients[unseen & (y == label)])) for label in (0, 1))
    if found < fewest:
        return part, f"the newest tenth has fewer than {fewest} unseen patients of a class"
    return aside, ""


def folds(
    y: NDArray[np.int8], patients: NDArray[np.int64], count: int, seed: int, repeat: int = 0
) -> NDArray[np.int64]:
    """A fold per row: patients stay whole, and folds have about the same number of positive patients."""
    ids, first = np.unique(patients, return_inverse=True)
    positive = np.bincount(first, weights=y, minlength=len(ids)) > 0
    rng = np.random.default_rng([seed, 0xF01D, repeat] if repeat else [seed, 0xF01D])
    fold = np.empty(len(ids), dtype=np.int64)
    start = 0
    for group in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        fold[rng.permutation(group)] = (np.arange(len(group)) + start) % count
        start += len(group)  # carry on where the other class ended, so that folds differ by one patient at most
    return np.asarray(fold[first])


def _position(patient: str, key: bytes) -> float:
    digest = hashlib.blake2b(patient.encode(), key=key[:64], digest_size=8, person=b"spinney-part").digest()
    return int.from_bytes(digest, "big") / 2**64


def _validation(split: Split, patients: int) -> float:
    """The share of patients kept for choosing."""
    if split.validation is not None:
        return split.validation
    return VALIDATION_SHARE * (1 - split.test) if patients >= LARGE else 0.0


def _part_at(position: float, test: float, validation: float) -> Part:
    if position < test:
        return Part.TEST
    return Part.VALIDATION if position < test + validation else Part.TRAINING
