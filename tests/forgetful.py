"""A disk that forgets in a power cut what was not synced, as far as that can be told from what a process asks of it.

It notes what every file held when it was synced last, and complains of a name that is given to something else, and of
names whose folder is not synced before the next one is given.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Inode = tuple[int, int]


class PowerCut(BaseException):
    """Nothing that the process does from here on happens."""


class Disk:
    """Under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wrong: list[str] = []
        self.named: list[str] = []
        self.dies_at: int | None = None
        self._synced: dict[Inode, str] = {}
        self._unsynced_names: dict[Path, str] = {}

    def forgets(self, path: Path) -> bool:
        """Whether a file's present content would be gone after a power cut."""
        return self._synced.get(_inode(path.stat())) != _digest(path)

    def fsync(self, handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.is_dir():
            self._unsynced_names.pop(path, None)
        elif path.is_file():
            self._synced[_inode(os.fstat(handle))] = _digest(path)

    def rename(self, source: Path, target: Path) -> None:
        if not target.is_relative_to(self.folder):
            return
        name = target.relative_to(self.folder).as_posix()
        if self.dies_at == len(self.named):
            raise PowerCut(name)
        self.named.append(name)
        files = [source] if source.is_file() else [one for one in source.rglob("*") if one.is_file()]
        self.wrong += [f"{name} is named before {one.name} is synced" for one in files if self.forgets(one)]
        self.wrong += [f"{before} may be lost while {name} is there" for before in self._unsynced_names.values()]
        self._unsynced_names = {target.parent: name}


@contextmanager
def forgetful(folder: Path, dies_at: int | None = None) -> Iterator[Disk]:
    """Watch what this process does to a folder; with `dies_at`, the power fails before the name of that number."""
    disk = Disk(folder.resolve())
    disk.dies_at = dies_at
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def watched_fsync(handle: Any) -> None:
        fsync(handle)
        disk.fsync(handle if isinstance(handle, int) else handle.fileno())

    def watching(move: Any) -> Any:
        def moved(source: Any, target: Any, **more: Any) -> None:
            disk.rename(Path(source).resolve(), Path(target).resolve())
            move(source, target, **more)

        return moved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", watched_fsync)
        patch.setattr(os, "replace", watching(replace))
        patch.setattr(os, "rename", watching(rename))
        yield disk


def _inode(stat: os.stat_result) -> Inode:
    return stat.st_dev, stat.st_ino


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
