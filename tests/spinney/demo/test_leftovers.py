"""What a killed run has left is ended by the next, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.demo.leftovers import end_databases, end_noted, note


@pytest.fixture
def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)


def test_what_a_killed_run_has_noted_is_ended_by_the_next(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    note(tmp_path / "server.pid", sleeper.pid)
    end_noted(tmp_path)
    assert sleeper.wait(30) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    (tmp_path / "server.pid").write_text(f"{sleeper.pid} 1")
    end_noted(tmp_path)
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()


def test_databases_of_dead_holders_are_ended_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    databases = {}
    for name in ("dead", "living", "unknown"):
        folder = tmp_path / name
        folder.mkdir()
        databases[name] = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)", folder],
            preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_DFL),  # ignored in the background
        )
        (folder / "pid").write_text(f"{databases[name].pid}\nmore")
    (tmp_path / "dead/holder").write_text(f"{os.getpid()} 1")
    note(tmp_path / "living/holder", os.getpid())
    (tmp_path / "unknown/holder").write_text(f"{os.getpid()} ")  # where nobody knows when a process was started
    end_databases(sorted(tmp_path.iterdir()), "holder", "pid")
    try:
        assert databases.pop("dead").wait(30) == -signal.SIGQUIT
        assert all(database.poll() is None for database in databases.values())
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(databases)
    finally:
        for database in databases.values():
            database.kill()
            database.wait()
