"""One process at a time, by a lock on an open file: it goes with the process that holds it, however that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spinney.errors import SpinneyError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class NotHere(SpinneyError):
    """Windows has neither the locks nor the file modes that a house relies on."""


@contextmanager
def alone(path: Path, busy: SpinneyError) -> Iterator[None]:
    """Hold the lock in this file; `busy` is raised if another process has it."""
    with path.open("w", encoding="utf-8") as file:
        try:
            take(file, wait=False)
        except BlockingIOError:
            raise busy from None
        yield


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold the lock in this file, after whoever has it now."""
    with path.open("w", encoding="utf-8") as file:
        take(file)
        yield


def take(file: IO[Any], *, wait: bool = True, shared: bool = False) -> None:
    """Lock a file that is open, until it is closed."""
    need_posix()
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(file, how if wait else how | fcntl.LOCK_NB)


def has_posix() -> bool:
    """Whether there are locks and modes."""
    return fcntl is not None


def need_posix() -> None:
    """NotHere in one line, before something strange is said about modes or locks."""
    if not has_posix():
        raise NotHere("a house needs file locks and modes that Windows doesn't have; run it on Linux, or under WSL")
