"""A process that ends what another one has started, when that one is gone, however it went.

After SIGKILL nobody tidies up. So whoever starts a server starts it through this file and holds a pipe to it; the
operating system closes the pipe with its holder.

    python guard.py run COMMAND...             the command, ended with its holder
    python guard.py sweep PID_FILE FOLDER      a PostgreSQL server, which detaches itself; its folder goes with it

It imports nothing of ours, so that it starts in a moment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE = 20.0


def under_guard(command: Sequence[str | Path]) -> list[str]:
    """The command under guard; its holder gives it `stdin=PIPE` and a session of its own."""
    return [sys.executable, "-I", "-S", __file__, "run", *map(str, command)]


def sweeper(pid_file: Path, folder: Path) -> subprocess.Popen[bytes]:
    """It acts when its stdin is closed, or when we are gone."""
    command = [sys.executable, "-I", "-S", __file__, "sweep", str(pid_file), str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603


def run(command: Sequence[str]) -> int:
    """Run the command in our session; when the holder is gone, end the whole session."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    alone = threading.Event()
    threading.Thread(target=_watch, args=(child, alone), daemon=True).start()
    code = child.wait()
    if alone.is_set():
        _end_session()
    return code if code >= 0 else 128 - code


def _watch(child: subprocess.Popen[bytes], alone: threading.Event) -> None:
    _read_to_the_end()
    alone.set()
    child.terminate()
    time.sleep(PATIENCE)
    _end_session()


def _end_session() -> None:
    os.killpg(0, signal.SIGKILL)  # ourselves, too


def end_database(pid_file: Path, folder: Path) -> None:
    """Tell a PostgreSQL server to end at once, and delete what it leaves."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text(encoding="utf-8").split()[0])
        if _speaks_of(pid, folder):
            os.kill(pid, signal.SIGQUIT)
        end = time.monotonic() + PATIENCE
        while _speaks_of(pid, folder) and pid_file.exists() and time.monotonic() < end:
            time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def _speaks_of(pid: int, folder: Path) -> bool:
    """Whether a process was started with this folder; after a restart the number may be anybody's."""
    try:
        return os.fsencode(folder) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists()


def _read_to_the_end() -> None:
    while os.read(0, 4096):
        pass


if __name__ == "__main__":
    if sys.argv[1] == "run":
        sys.exit(run(sys.argv[2:]))
    _read_to_the_end()
    end_database(Path(sys.argv[2]), Path(sys.argv[3]))
