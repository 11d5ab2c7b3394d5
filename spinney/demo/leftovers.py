"""Who started what, noted in files: the next run ends what is left of one that was killed together with its guards.

A number alone may be another process by now, so its start time is noted with it. Only Linux tells it so cheaply;
elsewhere nothing is ended here, and the guards have to do.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from spinney.demo.guard import end_database


def note(path: Path, pid: int) -> None:
    """Remember a process."""
    path.write_text(f"{pid} {_started(pid)}", encoding="ascii")


def end_noted(folder: Path) -> None:
    """End the sessions whose leaders are noted in this folder."""
    for path in folder.glob("*.pid"):
        pid, lives = _look(path)
        if lives:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        path.unlink()


def end_databases(folders: Iterable[Path], holder: str, pid_file: str) -> None:
    """End our PostgreSQL servers whose holder is gone, and delete their folders."""
    for folder in folders:
        with suppress(OSError):
            if folder.stat().st_uid == os.getuid() and _look(folder / holder)[1] is False:
                end_database(folder / pid_file, folder)


def _look(path: Path) -> tuple[int, bool | None]:
    """The process that was noted, and whether it lives; None if nobody can say."""
    try:
        pid, _, started = path.read_text(encoding="ascii").partition(" ")
        return int(pid), started == _started(int(pid)) if started else None
    except (OSError, ValueError):
        return 0, None


def _started(pid: int) -> str:
    """In ticks since the machine was started; nothing if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
