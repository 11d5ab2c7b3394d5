"""Which patients each of this site's own trees was grown on, by pseudonym, in the vault.

So a champion can be judged honestly in later nights: its own trees vote only on patients whom they have not seen, and
new patients are unseen by all.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.cohort.vault import Vault
from spinney.federation.forest_site import at_home, rounding_of
from spinney.forest import codec
from spinney.rows.cohort import Cohort
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.parts import Part
from spinney.storage.files import room_in, whole_file
from spinney.storage.private import private_folder
from spinney.study.study import Study

MOST_KEPT = 30  # rounds
Flags = NDArray[np.bool_]


def remember_grown(
    vault: Vault, study: Study, round_: int, memory: Mapping[str, Any], cohort: Cohort, ref: CohortRef
) -> None:
    """Keep what the round's memory knows before it is destroyed; a round without a forest leaves nothing."""
    forest, unseen = at_home(memory)
    if forest not in memory or unseen not in memory:
        return
    limits = codec.TreeLimits.of(study.forest)
    trees = codec.unpack_forest(memory[forest], rounding_of(study, cohort), limits).digests
    keep_grown(vault, study.name, str(round_), trees, ~np.asarray(memory[unseen]), cohort, ref)


def keep_grown(
    vault: Vault, study: str, name: str, trees: Sequence[str], seen: Flags, cohort: Cohort, ref: CohortRef
) -> None:
    """Keep who has grown which trees: training rows of a cohort x trees. A name begins with the number of a round."""
    people, place = np.unique(_pseudonyms(vault, ref)[cohort.part == Part.TRAINING], return_index=True)
    path = _folder(vault, study) / f"{name}.npz"
    with room_in(path.parent), whole_file(path) as file:
        np.savez(file, people=people, trees=np.array(trees, dtype="S32"), seen=np.packbits(seen[place], axis=0))


def unseen_by(vault: Vault, study: str, trees: Collection[str], ref: CohortRef) -> Flags:
    """Rows of a cohort x own trees (by digest): whether the tree has not seen the patient. Unknown trees know all."""
    patients, wanted = _pseudonyms(vault, ref), {tree.encode(): place for place, tree in enumerate(trees)}
    unseen = np.zeros((len(patients), len(wanted)), dtype=bool)
    for path in sorted(_folder(vault, study).glob("*.npz")):
        try:
            with np.load(path, allow_pickle=False) as kept:
                people, grown, packed = kept["people"], kept["trees"].tolist(), kept["seen"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            continue  # its trees count as trees that know everybody
        here = [(place, wanted[tree]) for place, tree in enumerate(grown) if tree in wanted]
        if here:
            seen = np.unpackbits(packed, axis=0, count=len(people)).astype(bool)
            at = np.minimum(np.searchsorted(people, patients), len(people) - 1)
            known = people[at] == patients
            if not known.any():
                continue  # no patient of then is here: with a new key of the vault they have other pseudonyms
            for place, own in here:
                unseen[:, own] = ~(known & seen[at, place])
    return unseen


def forget_grown(vault: Vault, study: str, needed: Collection[int]) -> None:
    """Delete what no model in use needs, but for the newest rounds."""
    files = {path: int(path.stem.partition("-")[0]) for path in _folder(vault, study).glob("*.npz")}
    newest = sorted({*files.values()})[-MOST_KEPT:]
    for path, number in files.items():
        if number not in newest and number not in needed:
            path.unlink()


def _pseudonyms(vault: Vault, ref: CohortRef) -> NDArray[np.bytes_]:
    return np.array(vault.read(ref)["patient"].to_pylist(), dtype="S32")


def _folder(vault: Vault, study: str) -> Path:
    return private_folder(vault.folder / "grown" / study)
