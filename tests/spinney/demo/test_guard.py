"""What a process has started ends with it, even when it is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spinney.demo.guard import under_guard

HOLDER = """
import subprocess, sys, time
from spinney.demo.guard import under_guard
held = subprocess.Popen(under_guard(sys.argv[1:]), stdin=subprocess.PIPE, start_new_session=True)
time.sleep(600)
"""
# ends when it is asked to, and leaves a child that it has told nobody of
PARENT = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1] + ".part", "w").write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def within(seconds: float, look: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not look() and time.monotonic() < end:
        time.sleep(0.05)
    return look()


def test_a_command_and_its_children_end_when_their_holder_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    command = [sys.executable, "-c", PARENT, str(told)]
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, *command])
    try:
        assert within(30, told.exists)
        pids = [int(pid) for pid in told.read_text().split()]
        assert all(lives(pid) for pid in pids)
    finally:
        holder.kill()
        holder.wait()
    assert within(30, lambda: not any(lives(pid) for pid in pids))


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_the_commands_own(code: int) -> None:
    command = under_guard([sys.executable, "-c", f"raise SystemExit({code})"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        assert process.wait(30) == code


def test_a_request_to_end_reaches_the_command() -> None:
    words = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print(1, flush=True)"
    command = under_guard([sys.executable, "-c", f"{words}; time.sleep(600)"])
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 7
