"""Programs from npm, each in a folder with its lock file, run on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from spinney.storage import locks


def install(folder: Path) -> None:
    """What the folder's lock file names, once."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    with locks.in_turn(folder / ".installing"):  # tests of two processes may want it at once
        if not (folder / "node_modules" / ".package-lock.json").exists():  # written when all is there
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True)


@contextmanager
def node(words: Callable[[int], Sequence[object]], answers: str, cwd: Path, **secrets: str) -> Iterator[str]:
    """A server, once it answers at this path; its address. `words` gets the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["node", *map(str, words(port))]
    settings = {**os.environ, **secrets}
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=settings) as run:
        try:
            address = f"http://127.0.0.1:{port}"
            _await(address + answers, run)
            yield address
        finally:
            run.terminate()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(f"the server did not start (exit code {server.poll()})")
