"""A real FHIR server from npm, on a free port of 127.0.0.1."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from spinney.storage import locks

HERE = Path(__file__).parents[1] / "services" / "fhir-server"
INSTALLED = HERE / "node_modules" / ".package-lock.json"  # written when all is there
PROGRAM = HERE / "node_modules" / "@healro" / "smart-fhir-server" / "dist" / "cli" / "bin.js"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The server with the bundles of a folder in it; its address."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    with locks.in_turn(HERE / ".installing"):  # tests of two processes may want it at once
        if not INSTALLED.exists():
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--no-auth",
        "--data-dir",
        str(folder),
        "--log-level",
        "error",
    ]
    with subprocess.Popen(["node", str(PROGRAM), *options], cwd=folder, stdout=subprocess.DEVNULL) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            _await(f"{address}/metadata", server)
            yield address
        finally:
            server.terminate()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(f"the FHIR server did not start (exit code {server.poll()})")
