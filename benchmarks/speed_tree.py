"""What a command costs with everything that it starts: wall time, processor time, and peak memory of all processes."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PROC = Path("/proc")


@dataclass(frozen=True)
class Spent:
    """From the command to its end."""

    wall: float
    processor: float  # of all processes below it
    peak_mib: float  # of their proportional set sizes together: a page that they share counts once
    code: int


def spent(words: Sequence[str], log: Path, *, cwd: Path, env: Mapping[str, str], timeout: float) -> Spent:
    """Run a command. What it leaves behind is ended and its processor time counted; its words go to a file."""
    adopt_orphans()
    before, others = _processor(), {*descendants()}
    with log.open("wb") as said, _Watch(others) as watch:
        began = time.perf_counter()
        command = subprocess.Popen(words, cwd=cwd, env={**env}, stdout=said, stderr=said)
        try:
            code = command.wait(timeout)
        except subprocess.TimeoutExpired:
            code = -signal.SIGALRM
        wall = time.perf_counter() - began
    _end_all_but(others)
    # the kernel's sum lacks processes that nobody waited for, what was seen lacks the very short ones
    processor = max(_processor() - before, sum(watch.seconds.values()))
    return Spent(wall, processor, watch.most / 2**20, code)


def adopt_orphans() -> None:
    """Processes whose parent ends become children of this one, so that none is lost to the count."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[int]:
    """All processes below this one."""
    children = defaultdict(list)
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                children[int(parent)].append(int(entry.name))
    found, ahead = [], [os.getpid()]
    while ahead:
        ahead = [child for parent in ahead for child in children[parent]]
        found += ahead
    return found


def _end_all_but(others: set[int]) -> None:
    """End what a command has left behind: daemons that would count into the next measurement."""
    for round_ in range(50):
        left = {*descendants()} - others
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM if round_ < 10 else signal.SIGKILL)
        for process in left:
            with suppress(ChildProcessError):  # not ours yet, but its parent's
                os.waitpid(process, os.WNOHANG)
        if not left:
            return
        time.sleep(0.2)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Watch:
    """Looks at memory and processor time of all new descendants, five times a second."""

    def __init__(self, others: set[int]) -> None:
        self.others, self.most = others, 0
        self.seconds: dict[int, float] = {}

    def __enter__(self) -> _Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._over.wait(0.2):
            mine = {*descendants()} - self.others
            self.most = max(self.most, sum(map(_memory, mine)))
            self.seconds |= {process: max(_seconds(process), self.seconds.get(process, 0)) for process in mine}

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _memory(process: int) -> int:
    with suppress(OSError):
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _seconds(process: int) -> float:
    """Of the process alone, without children."""
    with suppress(OSError):
        words = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
