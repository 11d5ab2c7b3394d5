"""Folders and files that only this house may look into: mode 0700 and 0600.

What is open to others is refused, not mended: somebody may have been there, and it may be a folder for other things.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.errors import SpinneyError
from spinney.storage import locks


class OpenToOthers(SpinneyError):
    """Others may look into what is private; the message has the command that ends it."""


def private_folder(folder: Path) -> Path:
    """A folder of mode 0700, made if it is not there, as are those above it; one that is open to others is refused."""
    if not folder.parent.exists():
        private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    return refuse_open(folder, "700")


def read_private(path: Path) -> bytes:
    """A file's bytes, if nobody else could have read or changed them."""
    refuse_open(path.parent, "700")
    return refuse_open(path, "600").read_bytes()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process of this house at a time; the lock goes with the process that holds it."""
    locks.need_posix()
    with locks.in_turn(private_folder(folder) / ".lock"):
        yield


def refuse_open(path: Path, wanted: str) -> Path:
    """The path, if its mode keeps others out. Windows has no modes, and no house runs there."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077 and locks.has_posix():
        raise OpenToOthers(f"{path} is open to others (mode {mode:04o}); run: chmod {wanted} {path}")
    return path
