"""What a command costs includes what it starts and leaves behind, and nothing of that stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import speed_tree

ROOT = Path(speed_tree.__file__).parent.parent

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
    much = b"x" * (200 << 20)
    begin = time.process_time()
    while time.process_time() < begin + 1:
        pass
    time.sleep(600)
time.sleep(3)
"""

CARELESS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children leave no trace with their parent
if os.fork() == 0:
    while time.process_time() < 1.5:
        pass
    time.sleep(1)
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    pass
"""

MEASURE = """
import sys
from pathlib import Path
from benchmarks.speed_tree import spent
folder = Path(sys.argv[1])
one = spent([sys.executable, "-c", (folder / "daemon.py").read_text(), str(folder / "pid")], folder / "log",
            cwd=folder, env={}, timeout=60)
print(one.wall, one.processor, one.peak_mib, one.code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_daemon_that_a_command_leaves_behind_is_counted_and_ended(tmp_path):
    (tmp_path / "daemon.py").write_text(DAEMON)
    words = [sys.executable, "-c", MEASURE, str(tmp_path)]  # in a process of its own: it adopts orphans
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    wall, processor, peak, code = map(float, answer.stdout.split())
    assert code == 0
    assert 3 <= wall < 60
    assert processor >= 0.5  # a machine that is very busy gives it less than it asks for
    assert peak >= 200
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processor_time_of_processes_that_nobody_waits_for_is_counted(tmp_path):
    (tmp_path / "daemon.py").write_text(CARELESS)
    words = [sys.executable, "-c", MEASURE, str(tmp_path)]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(answer.stdout.split()[1]) >= 1
