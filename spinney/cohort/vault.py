"""The site's private folder: cohorts, what a pull needs while it runs, and the key that hides who a patient is.

Folders have mode 0700 and files 0600. Only what the study names is written, with the index time and, instead of the
patient's identifier, a hash under a key that never leaves the house.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from spinney.errors import SourceFailed
from spinney.rows.cohort_ref import CohortRef
from spinney.storage import locks
from spinney.storage.files import is_full, sync_folder, whole_file, write_whole
from spinney.storage.private import private_folder
from spinney.study.study import Study

PSEUDONYM_BYTES = 16
LEFT_BEHIND = ("staging", "stores", "handover")
ACCEPTED = ".accepted"
CELLS_AT_ONCE = 20_000_000


class Forgotten(NamedTuple):
    """How many cohorts are gone, and the studies that were left alone because a pull is at them."""

    cohorts: int
    busy: tuple[str, ...]


class CohortDamaged(SourceFailed):
    """A cohort in the vault is not what was written; the next pull makes another one."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}; a run that is started again pulls it anew. See: spinney house verify")


class Vault:
    """Everything about patients that a site keeps."""

    def __init__(self, home: Path) -> None:
        self.folder = private_folder(home / "vault")

    @property
    def key(self) -> bytes:
        """The site's secret for hashing patients; made when it is first needed."""
        path = self.folder / "key"
        if not path.exists():
            fresh = self.folder / f"key.{secrets.token_hex(8)}"
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was faster: its key counts
                path.hardlink_to(fresh)
            fresh.unlink()
            sync_folder(self.folder)
        key = path.read_bytes()
        if len(key) != 32:
            raise SourceFailed(f"{path} is damaged; restore it, or delete it to start anew with other pseudonyms")
        return key

    @property
    def salt(self) -> str:
        """With what this house's draws begin, so that nobody else can repeat them."""
        return hashlib.blake2b(key=self.key, person=b"spinney-draws", digest_size=32).hexdigest()

    def pseudonyms(self, patients: pa.Array | pa.ChunkedArray) -> pa.Array:
        """A keyed hash per patient: needed to keep a patient's rows together, and of no use elsewhere."""
        key = self.key
        known = pc.unique(patients).to_pylist()
        hidden = [hmac.digest(key, str(one).encode(), "sha256")[:PSEUDONYM_BYTES].hex() for one in known]
        return pa.array(hidden, pa.string()).take(pc.index_in(patients, pa.array(known, patients.type)))

    def write(self, table: pa.Table, study: Study, watermark: datetime | None, *, ripe: bool = True) -> CohortRef:
        """Keep the columns that the study names, and no others. Rows that are not ripe are kept apart."""
        allowed, there = ["patient", "index_time", *(feature.name for feature in study.features)], {*table.column_names}
        table = table.select([column for column in (*allowed, study.label.name) if column in there])
        table = table.set_column(0, "patient", self.pseudonyms(table["patient"]))
        table = canonical(table)
        digest = table_digest(table)
        folder = private_folder(self.folder / ("cohorts" if ripe else "unripe") / study.name)
        path = folder / f"{study.digest[:12]}-{digest[:16]}.parquet"
        ref = CohortRef(path=path, rows=table.num_rows, digest=digest, study=study.digest, watermark=watermark)
        keep_table(table, path)
        write_whole(path.with_suffix(".json"), ref.note())
        return ref

    def read(self, ref: CohortRef) -> pa.Table:
        """The table behind a reference, if it is still the same; CohortDamaged if not."""
        try:
            table = pq.read_table(ref.path)
        except FileNotFoundError:
            raise CohortDamaged(ref.path, "is not there any more") from None
        except (OSError, pa.ArrowException):
            raise CohortDamaged(ref.path, "can't be read") from None
        if table_digest(table) != ref.digest:
            raise CohortDamaged(ref.path, "was changed after it was written")
        return table

    def cohorts(self, study: str, *, ripe: bool = True) -> list[CohortRef]:
        """The ripe cohorts that the vault holds for a study (by name), or the open ones; oldest first.

        One whose note is damaged is none.
        """
        folder = self.folder / ("cohorts" if ripe else "unripe") / study
        notes = sorted(folder.glob("*.json"), key=lambda note: note.stat().st_mtime_ns)
        refs = [ref for note in notes if (ref := read_note(note)) is not None]
        return [ref for ref in refs if ref.path.exists()]

    def newest_whole(self, cohorts: Sequence[CohortRef]) -> tuple[CohortRef, pa.Table] | None:
        """The last of some cohorts (oldest first) that can be read: what only informs takes what there is."""
        for ref in reversed(cohorts):
            with suppress(CohortDamaged):
                return ref, self.read(ref)
        return None

    def accept(self, ref: CohortRef) -> None:
        """Note that a cohort has passed its checks: the next one is compared with it."""
        write_whole(ref.path.with_suffix(ACCEPTED), b"")

    def is_accepted(self, ref: CohortRef) -> bool:
        """Whether a cohort has passed its checks."""
        return ref.path.with_suffix(ACCEPTED).exists()

    def forget(self, older_than: timedelta, now: datetime | None = None) -> Forgotten:
        """Delete cohorts that are older, and what pulls left behind; not those of a round or pull that is running."""
        oldest = ((now or datetime.now(UTC)) - older_than).timestamp()
        places = [path for what in ("cohorts", "unripe", *LEFT_BEHIND) for path in self.folder.glob(f"{what}/*/")]
        gone, busy = 0, []
        for study in sorted({place.name for place in places}):
            try:
                with self._locked(study):
                    gone += self._forget(study, oldest)
            except SourceFailed:
                busy.append(study)
        return Forgotten(gone, tuple(busy))

    def _forget(self, study: str, oldest: float) -> int:
        cohorts = [self.folder / "cohorts" / study, self.folder / "unripe" / study]
        spared = self.pinned(study)
        notes = [note for folder in cohorts for note in folder.glob("*.json")]
        gone = [note for note in notes if note.stat().st_mtime < oldest and note.stem not in spared]
        for note in gone:
            for suffix in (".parquet", ".npz", ACCEPTED):  # the table, and its arrays where a round has used it
                note.with_suffix(suffix).unlink(missing_ok=True)
            note.unlink()
        kept = {note.stem for note in notes if note.exists()}
        for left in [one for folder in cohorts for one in folder.glob("*")]:
            if left.name.lstrip(".").split(".")[0] not in kept and left.stat().st_mtime < oldest:
                left.unlink()  # what a killed writer left has no note
        for left in (self.folder / what / study for what in LEFT_BEHIND):
            if left.exists() and max(one.stat().st_mtime for one in (left, *left.rglob("*"))) < oldest:
                shutil.rmtree(left)
        return len(gone)

    def pinned(self, study: str) -> set[str]:
        """Cohorts of rounds that are not over: a round's memory names its cohort, and is destroyed with the round."""
        pins = (self.folder.parent / "rounds" / study).glob("*/cohort.text")
        return {CohortRef.of_note(pin.read_bytes(), self.folder).path.stem for pin in pins}

    @contextmanager
    def staging(self, name: str) -> Iterator[Path]:
        """A folder for one pull at a time, deleted at the end; if the source fails it stays, to go on from there."""
        folder = private_folder(self.folder / "staging" / name)
        with self._locked(name):
            try:
                yield folder
            except SourceFailed:
                raise
            except OSError as error:
                shutil.rmtree(folder)
                raise _no_room(error, self.folder) from None
            except BaseException:
                shutil.rmtree(folder)
                raise
            shutil.rmtree(folder)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        busy = SourceFailed(f"another pull for {name} is running; wait until it is done")
        with locks.alone(private_folder(self.folder / "staging") / f"{name}.lock", busy):
            yield

    def store(self, name: str) -> Path:
        """A folder that stays from night to night, for sources that go on where they stopped."""
        return private_folder(self.folder / "stores" / name)


def read_note(note: Path) -> CohortRef | None:
    """The cohort that a note in the vault is about; None where the note is damaged."""
    try:
        return CohortRef.of_note(note.read_bytes(), note.parent)
    except (OSError, ValidationError):
        return None


def _no_room(error: OSError, folder: Path) -> Exception:
    """A full disk in one line; any other error as it is."""
    if not is_full(error):
        return error
    return SourceFailed(f"there is no room left in {folder}; make some and pull again: nothing half-written was kept")


def keep_table(table: pa.Table, path: Path) -> None:
    """A private file that is there as a whole, or as it was."""
    rows = max(CELLS_AT_ONCE // table.num_columns, 1000)
    words = [one.name for one in table.schema if pa.types.is_string(one.type)]  # measured values hardly ever repeat
    with whole_file(path) as file:
        pq.write_table(table, file, compression="zstd", row_group_size=rows, use_dictionary=words)


def canonical(table: pa.Table) -> pa.Table:
    """The same rows in the one order that they have, with NaN as null and -0 as 0."""
    names = table.column_names
    order = pc.sort_indices(table.select(names[:2]), [(name, "ascending") for name in names[:2]])
    keys = table.select(names[:2]).take(order)
    if len(names) > 2 and _repeats(keys):  # only then the other columns decide
        plain = pa.table({name: _plain(table[name]) for name in names})
        order = pc.sort_indices(plain, [(name, "ascending") for name in names])
    return pa.table({name: _plain(table[name].take(order)) for name in names})  # one column at a time: it may be wide


def _repeats(keys: pa.Table) -> bool:
    return len(keys.group_by(keys.column_names).aggregate([])) < len(keys)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        return column
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return pc.add(column, pa.scalar(0.0, column.type))


def table_digest(table: pa.Table) -> str:
    """SHA-256 over names, types and values, whatever the file format or its version does with them."""
    digest = hashlib.sha256(f"{table.num_rows}".encode())
    for name in table.column_names:
        column = table[name].combine_chunks()
        digest.update(f"\n{name}:{column.type}\n".encode())
        digest.update(np.packbits(np.asarray(column.is_null())).tobytes())
        digest.update(_value_bytes(column))
    return digest.hexdigest()


def _value_bytes(column: pa.Array) -> bytes:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words = [word.encode() for word in pc.fill_null(column, "").to_pylist()]
        return np.array([len(word) for word in words], "<u8").tobytes() + b"".join(words)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return bytes(values.astype("<f8" if values.dtype.kind == "f" else "<i8").tobytes())
