"""What a house remembers between steps and nights, in files that only it can read.

Every write is whole or not at all: a temporary file, synced, then renamed. Values are bytes, text or NumPy arrays;
nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from spinney.errors import SpinneyError
from spinney.storage.private import private_folder

KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,120}$")


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StateDamaged(SpinneyError):
    """A file of the house is not what it was when it was written."""


class DiskFull(SpinneyError):
    """There is no room left in the house; what was written before is whole."""


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """A full disk in one line that says what to do; any other error as it is."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise DiskFull(f"no room left in {folder}: make room and start again; what was done so far is kept") from None


def is_full(error: OSError) -> bool:
    """Whether it is for want of room; one of many files, whose errors shutil collects as words, is enough."""
    words = (os.strerror(code) for code in NO_ROOM)
    return error.errno in NO_ROOM or (isinstance(error, shutil.Error) and any(one in str(error) for one in words))


class RoundState(MutableMapping[str, Any]):
    """The memory of one round: one file per name."""

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)

    def __getitem__(self, key: str) -> Any:
        path = self._path(key)
        if path is None:
            raise KeyError(key)
        data = path.read_bytes()
        if path.suffix == ".bytes":
            return data
        if path.suffix == ".text":
            return data.decode()
        try:
            return np.load(io.BytesIO(data), allow_pickle=False)
        except ValueError:
            raise StateDamaged(f"{path.name} of this round is damaged; start the round anew") from None

    def __setitem__(self, key: str, value: Any) -> None:
        if not KEY.match(key):
            raise ValueError(f"{key!r} can't name something to remember")
        if isinstance(value, bytes):
            suffix, data = ".bytes", value
        elif isinstance(value, str):
            suffix, data = ".text", value.encode()
        elif isinstance(value, np.ndarray):
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=False)
            suffix, data = ".npy", buffer.getvalue()
        else:
            raise TypeError(f"{type(value).__name__} can't be remembered")
        old = self._path(key)
        write_whole(self.folder / f"{key}{suffix}", data)
        if old is not None and old.suffix != suffix:
            old.unlink()

    def __delitem__(self, key: str) -> None:
        path = self._path(key)
        if path is None:
            raise KeyError(key)
        path.unlink()

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in sorted(self.folder.iterdir()) if path.suffix in {".bytes", ".text", ".npy"})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def forget(self) -> None:
        """Destroy everything, keys above all."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            raise StateDamaged(f"{self.folder} can't be deleted, and holds keys of a round that is over: delete it")

    def _path(self, key: str) -> Path | None:
        if not KEY.match(key):
            return None
        found = (self.folder / f"{key}{suffix}" for suffix in (".bytes", ".text", ".npy"))
        return next((path for path in found if path.exists()), None)


class ScoredTrees(MutableMapping[str, int]):
    """Which trees were scored in which round, for ever: one appended line each."""

    def __init__(self, path: Path) -> None:
        private_folder(path.parent)
        self._path = path
        self._known: dict[str, int] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    digest, round_ = json.loads(line)
                except ValueError:
                    continue  # the half line of a writer that was killed; its tree was not scored
                self._known[str(digest)] = int(round_)

    def __getitem__(self, digest: str) -> int:
        return self._known[digest]

    def __setitem__(self, digest: str, round_: int) -> None:
        self.update({digest: round_})

    def update(self, other: Any = (), /, **more: int) -> None:
        """Remember many at once, on disk before they count."""
        new = {key: value for key, value in dict(other, **more).items() if self._known.get(key) != value}
        if not new:
            return
        lines = "".join(json.dumps([digest, round_]) + "\n" for digest, round_ in new.items())
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with room_in(self._path.parent), os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n" + lines)  # a line of its own, whatever a killed writer left behind
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._path.parent)
        self._known |= new

    def __delitem__(self, digest: str) -> None:
        raise TypeError("what was scored stays known")

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing, readable by this house only, and still there after a power cut."""
    with room_in(path.parent), whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """The same for what is written piece by piece: it gets its name when all of it is on the disk, and not before."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync_tree(folder: Path) -> None:
    """Make everything under a folder that somebody else has written survive a power cut."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)


def sync_folder(folder: str | Path) -> None:
    """Make new names in a folder survive a power cut."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def installation_folder() -> Path | None:
    """Where all houses find what fits this installation of Spinney; None where nothing can be kept there."""
    shared = Path(sys.prefix) / "share" / "spinney"
    try:
        shared.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return shared if os.access(shared, os.W_OK) else None
