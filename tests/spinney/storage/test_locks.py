"""One process at a time: others wait or are told, and a lock goes with the process that holds it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.errors import SpinneyError
from spinney.storage import locks
from spinney.storage.locks import NotHere, alone, in_turn, take
from tests.places import ROOT

BUSY = SpinneyError("another run is at it")
HOLDER = """
import sys
from pathlib import Path
from spinney.storage.locks import in_turn
with in_turn(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / ".lock"


@pytest.fixture
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(lock)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_whoever_comes_second_is_told_at_once(lock: Path, holder: subprocess.Popen[str]):
    with pytest.raises(SpinneyError, match="another run is at it"), alone(lock, BUSY):
        pytest.fail("two at once")
    assert holder.poll() is None


def test_a_killed_holder_leaves_nothing_locked(lock: Path, holder: subprocess.Popen[str]):
    holder.kill()
    holder.wait()
    with alone(lock, BUSY):
        assert lock.exists()


def test_in_turn_waits_until_the_other_has_ended(lock: Path, holder: subprocess.Popen[str]):
    done = threading.Event()

    def wait() -> None:
        with in_turn(lock):
            done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not done.wait(0.1)
    holder.communicate("")
    thread.join(30)
    assert done.is_set()


def test_readers_share_what_a_writer_has_alone(lock: Path):
    with lock.open("w") as one, lock.open("r") as other, lock.open("w") as writer:
        take(one, shared=True)
        take(other, shared=True)
        with pytest.raises(BlockingIOError):
            take(writer, wait=False)


def test_where_there_are_no_such_locks_one_line_says_so(lock: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(NotHere, match="run it on Linux, or under WSL"), in_turn(lock):
        pytest.fail("held without a lock")
