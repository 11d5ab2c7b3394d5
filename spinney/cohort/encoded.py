"""A cohort as the forest's arrays, kept beside its table in the vault, so that tasks pass a reference and no rows."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from typing import Any

import numpy as np

from spinney.cohort.vault import CohortDamaged, Vault
from spinney.errors import SourceFailed
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.encode import columns_of
from spinney.storage.files import room_in, whole_file
from spinney.study.study import Study

ARRAYS = ("present", "X", "y", "patients", "part")
WORDS = ("no_newest", "salt")
SUFFIX = ".npz"


def encode_table(vault: Vault, ref: CohortRef, study: Study) -> Cohort:
    """The arrays of a cohort; the vault's key decides who trains and who tests, and on whom a tree is grown."""
    frame = vault.read(ref).to_pandas()
    cohort = cohort_from_frame(frame, study, frame["patient"].tolist(), key=vault.key)
    return replace(cohort, salt=vault.salt)


def write_encoded(vault: Vault, ref: CohortRef, study: Study) -> CohortRef:
    """Encode a cohort and keep its arrays; the reference stays the same."""
    cohort = encode_table(vault, ref, study)
    arrays: dict[str, Any] = {name: np.asarray(getattr(cohort, name)) for name in (*ARRAYS, *WORDS)}
    path = ref.path.with_suffix(SUFFIX)
    with room_in(path.parent), whole_file(path) as file:
        np.savez(file, **arrays)
    return ref


def read_encoded(ref: CohortRef, study: Study) -> Cohort:
    """The arrays of a cohort that was encoded before."""
    columns = columns_of(study.features)
    try:
        with ref.path.with_suffix(SUFFIX).open("rb") as file, np.load(file, allow_pickle=False) as kept:
            arrays: dict[str, Any] = {name: kept[name] for name in ARRAYS}
            words: dict[str, Any] = {name: str(kept[name]) for name in WORDS}
            cohort = Cohort(columns, **arrays, **words)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        raise CohortDamaged(ref.path.with_suffix(SUFFIX), "can't be read") from None
    if cohort.X.shape != (ref.rows, len(columns)):
        raise SourceFailed(f"cohort {ref.digest[:16]} was encoded for another study; encode it again")
    return cohort
