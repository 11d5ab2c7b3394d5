"""Who is in which part. The same patient is in the same part every night, with all of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from spinney.settings import Split

Parts = NDArray[np.int8]


class Part(IntEnum):
    """Training grows, validation chooses, test only measures; the newest index events measure how time goes by."""

    TRAINING = 0
    VALIDATION = 1
    TEST = 2
    NEWEST = 3


def parts_by_hash(patients: Sequence[str], key: bytes, split: Split) -> Parts:
    """The part of every row from a keyed hash of its patient; the key never leaves the site."""
    part = {patient: _part_at(_position(patient, key), split) for patient in set(patients)}
    return np.array([part[patient] for patient in patients], dtype=np.int8)


def parts_by_seed(y: NDArray[np.int8], split: Split) -> Parts:
    """For tables without patient identifiers: stratified by class, one row is one patient."""
    rng = np.random.default_rng([split.seed, 0x5EED])
    position = np.empty(len(y))
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        position[rows] = (rng.permutation(len(rows)) + rng.random()) / max(len(rows), 1)
    return np.array([_part_at(at, split) for at in position], dtype=np.int8)


def newest_aside(part: Parts, times: NDArray[np.int64], share: float) -> Parts:
    """The newest rows as a part of their own; rows of one moment stay together."""
    ordered = np.sort(times)
    first = ordered[min(int(np.ceil(len(ordered) * (1 - share))), len(ordered) - 1)] if len(ordered) else 0
    return np.where(times >= first, np.int8(Part.NEWEST), part)


def folds(y: NDArray[np.int8], patients: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """A fold per row: patients stay whole, and folds have about the same number of positive patients."""
    ids, first = np.unique(patients, return_inverse=True)
    positive = np.bincount(first, weights=y, minlength=len(ids)) > 0
    rng = np.random.default_rng([seed, 0xF01D])
    fold = np.empty(len(ids), dtype=np.int64)
    start = 0
    for group in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        fold[rng.permutation(group)] = (np.arange(len(group)) + start) % count
        start += len(group)  # carry on where the other class ended, so that folds differ by one patient at most
    return np.asarray(fold[first])


def _position(patient: str, key: bytes) -> float:
    digest = hashlib.blake2b(patient.encode(), key=key[:64], digest_size=8, person=b"spinney-part").digest()
    return int.from_bytes(digest, "big") / 2**64


def _part_at(position: float, split: Split) -> Part:
    if position < split.test:
        return Part.TEST
    return Part.VALIDATION if position < split.test + split.validation else Part.TRAINING
