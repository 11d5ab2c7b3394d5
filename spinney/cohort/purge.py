"""Patients leave what earlier nights have kept: cohorts and their arrays, predictions, and the say of own trees.

A tree that a patient has grown is silent from then on; which trees that are is written down first, so that a kill in
between forgets no tree. What a running round or pull works with is left to the next night.

vault/grown/STUDY/silent.json    digests of own trees that vote no more, at this house
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from spinney.cohort.encoded import ARRAYS, SUFFIX
from spinney.cohort.vault import ACCEPTED, LEFT_BEHIND, Vault, keep_table, read_note, table_digest
from spinney.errors import SourceFailed
from spinney.rows.cohort_ref import CohortRef
from spinney.storage import locks
from spinney.storage.files import whole_file, write_whole
from spinney.storage.private import private_folder

SILENT = "silent.json"
Flags = NDArray[np.bool_]
Gone = Callable[[list[str]], Flags]
"""Of some pseudonyms, whose are to go."""


@dataclass
class Purged:
    """What was done, in counts and references."""

    rows: int = 0
    predictions: int = 0
    silenced: int = 0
    """Own trees that vote no more."""
    replaced: dict[str, CohortRef | None] = field(default_factory=dict)
    """Digest of a cohort -> what is left of it; None: nothing."""
    busy: tuple[str, ...] = ()
    """Studies that are left to their next night, because something works with them."""


def forget_study(vault: Vault, study: str) -> int:
    """Delete all that the house keeps of the study's patients, also what a running round or pull works with.

    Says how many files went. Models, reports and the log stay: no patient is in them.
    """
    kept = ("cohorts", "unripe", "grown", *LEFT_BEHIND)
    gone = 0
    for folder in (*(vault.folder / what / study for what in kept), vault.folder.parent / "predictions" / study):
        if folder.exists():
            gone += sum(path.is_file() for path in folder.rglob("*"))
            shutil.rmtree(folder)
    return gone


def gone_of(vault: Vault, out: list[str], kept: list[str] | None = None) -> Gone:
    """By the source's own ids: those who are out, or where `kept` is given, all but those."""
    hidden = {*vault.pseudonyms(pa.array(out, pa.string())).to_pylist()} if out else set[str]()
    staying = None if kept is None else {*vault.pseudonyms(pa.array(kept, pa.string())).to_pylist()}

    def gone(people: list[str]) -> Flags:
        return np.array([one in hidden or (staying is not None and one not in staying) for one in people], dtype=bool)

    return gone


def purge(vault: Vault, study: str, gone: Gone, *, pinned: bool = False) -> Purged:
    """Everything of one study (by name). `pinned`: cohorts of rounds that are not over, too; none may be running."""
    done = Purged()
    done.silenced = _silence(vault, study, gone)
    spared = set[str]() if pinned else vault.pinned(study)
    for ripe in (True, False):
        for ref in vault.cohorts(study, ripe=ripe):
            if ref.path.stem not in spared:
                _purge_cohort(ref, gone, done)
        for note in (vault.folder / ("cohorts" if ripe else "unripe") / study).glob("*.json"):
            if read_note(note) is None and note.stem not in spared:
                _delete(note)
    for path in sorted((vault.folder.parent / "predictions" / study).glob("*.parquet")):
        done.predictions += _purge_rows(path, gone)
    return done


def purge_others(vault: Vault, but: str, gone: Gone) -> tuple[str, ...]:
    """The same in all other studies of the house, also those that have no nights any more; says which are busy."""
    busy = []
    for study in sorted(studies_in(vault) - {but}):
        try:
            with _at_rest(vault, study):
                purge(vault, study, gone)
        except SourceFailed:
            busy.append(study)
    return tuple(busy)


def studies_in(vault: Vault) -> set[str]:
    """Studies of which the house keeps something about patients."""
    places = [vault.folder / what for what in ("cohorts", "unripe", "grown")] + [vault.folder.parent / "predictions"]
    return {path.name for place in places if place.exists() for path in place.iterdir() if path.is_dir()}


def forget_left_handover(vault: Vault, study: str) -> None:
    """Who was to be scored by a run that was killed; not while one scores."""
    folder = vault.folder / "handover"
    if (folder / study).exists():
        try:
            with locks.alone(folder / f"{study}.lock", SourceFailed("busy")):
                shutil.rmtree(folder / study)
        except SourceFailed:
            return


def silent_trees(vault: Vault, study: str) -> set[str]:
    """Digests of own trees that vote no more."""
    path = vault.folder / "grown" / study / SILENT
    try:
        return {str(tree) for tree in json.loads(path.read_bytes())} if path.exists() else set()
    except (ValueError, TypeError):
        raise SourceFailed(f"{path} is damaged; restore it from the house's backup") from None


@contextmanager
def _at_rest(vault: Vault, study: str) -> Iterator[None]:
    """Neither a round nor a pull of a study runs meanwhile."""
    busy = SourceFailed(f"{study} is busy")
    with ExitStack() as stack:
        for folder, name in (
            (vault.folder.parent / "rounds" / study, ".lock"),
            (vault.folder / "staging", f"{study}.lock"),
        ):
            stack.enter_context(locks.alone(private_folder(folder) / name, busy))
        yield


def _silence(vault: Vault, study: str, gone: Gone) -> int:
    """Own trees that one of these patients has grown, and the patients out of the notes of who has grown what."""
    silent, changes = silent_trees(vault, study), []
    before = len(silent)
    for path in sorted((vault.folder / "grown" / study).glob("*.npz")):
        try:
            with np.load(path, allow_pickle=False) as kept:
                people, trees, packed = kept["people"], kept["trees"], kept["seen"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            continue  # its trees have no say on anybody, and nobody can be found in it
        out = gone([one.decode() for one in people.tolist()])
        if out.any():
            seen = np.unpackbits(packed, axis=0, count=len(people)).astype(bool)
            grown = seen[out].any(axis=0)
            silent |= {one.decode() for one in trees[grown].tolist()}
            changes.append((path, people[~out], trees[~grown], seen[~out][:, ~grown]))
    if len(silent) > before:
        write_whole(vault.folder / "grown" / study / SILENT, json.dumps(sorted(silent)).encode())
    for path, people, trees, seen in changes:
        if len(people):
            _save(path, people=people, trees=trees, seen=np.packbits(seen, axis=0))
        else:
            path.unlink()
    return len(silent) - before


def _purge_cohort(ref: CohortRef, gone: Gone, done: Purged) -> None:
    try:
        table = pq.read_table(ref.path)
    except (OSError, pa.ArrowException):  # who is in it can't be seen, and nothing can be made of it
        _delete(ref.path)
        return
    out = gone(table["patient"].to_pylist())
    if not out.any():
        return
    left = table.filter(pa.array(~out))
    done.rows += int(out.sum())
    done.replaced[ref.digest] = _replace(ref, left, out) if left.num_rows else None
    _delete(ref.path)


def _delete(path: Path) -> None:
    for suffix in (".json", ".parquet", SUFFIX, ACCEPTED):  # the note first: a cohort without one is none
        path.with_suffix(suffix).unlink(missing_ok=True)


def _replace(ref: CohortRef, left: pa.Table, out: Flags) -> CohortRef:
    """What is left of a cohort, as old as it was and with the arrays that it had."""
    digest = table_digest(left)
    path = ref.path.with_name(f"{ref.path.stem.split('-')[0]}-{digest[:16]}.parquet")
    made = ref.model_copy(update={"path": path, "rows": left.num_rows, "digest": digest})
    keep_table(left, path)
    if ref.path.with_suffix(SUFFIX).exists():
        with np.load(ref.path.with_suffix(SUFFIX), allow_pickle=False) as kept:
            arrays: dict[str, Any] = {name: kept[name] for name in kept.files}
        for name in ARRAYS:
            if name != "present":
                arrays[name] = arrays[name][~out]
        arrays["patients"] = np.unique(arrays["patients"], return_inverse=True)[1]
        _save(path.with_suffix(SUFFIX), **arrays)
    if ref.path.with_suffix(ACCEPTED).exists():
        write_whole(path.with_suffix(ACCEPTED), b"")
    age = ref.path.with_suffix(".json").stat()
    write_whole(path.with_suffix(".json"), made.note())
    os.utime(path.with_suffix(".json"), ns=(age.st_atime_ns, age.st_mtime_ns))
    return made


def _purge_rows(path: Path, gone: Gone) -> int:
    """Rows of a file that has a column of pseudonyms; it keeps its age, and goes where nothing is left."""
    table = pq.read_table(path)
    out = gone(table["patient"].to_pylist())
    if not out.any():
        return 0
    age = path.stat()
    if out.all():
        path.unlink()
    else:
        keep_table(table.filter(pa.array(~out)), path)
        os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
    return int(out.sum())


def _save(path: Path, **arrays: Any) -> None:
    with whole_file(path) as file:
        np.savez(file, **arrays)
