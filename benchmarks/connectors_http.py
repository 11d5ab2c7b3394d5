"""Two FHIR servers on 127.0.0.1 for benchmarks/connectors.py, each a process of its own, and FHIR-PYrate as a client.

REST is the demo's own server. The Bulk Data server hands out the NDJSON files as they are, at once; a real one takes
minutes to write them first.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.connectors_ways import Built
from spinney.demo.fhir_server import DemoFhirServer

KINDS = ("Patient", "Encounter", "Observation")
PYRATE_SCRIPT = Path(__file__).with_name("peers") / "pyrate.py"


@contextmanager
def served(folder: Path) -> Iterator[dict[str, str]]:
    """Addresses by kind of server."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    servers = [context.Process(target=serve, args=(folder, there), daemon=True) for serve in (_rest, _bulk)]
    for server in servers:
        server.start()
    try:
        yield dict(here.recv() for _ in servers)
    finally:
        for server in servers:
            server.terminate()
            server.join()


def with_pyrate(python: Path, address: str, folder: Path) -> Built:
    """FHIR-PYrate in its own environment: a row per Observation, column by column through FHIRPath."""
    result = folder / "pyrate.json"
    done = subprocess.run([python, PYRATE_SCRIPT, address, result], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FHIR-PYrate failed:\n{done.stderr[-2000:]}")
    return Built(**json.loads(result.read_text(encoding="utf-8")))


def _rest(folder: Path, addresses: Any) -> None:
    with DemoFhirServer(folder) as server:
        addresses.send(("rest", server.base_url))
        signal.pause()


def _bulk(folder: Path, addresses: Any) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Bulk,), {"folder": folder}))
    addresses.send(("bulk", f"http://127.0.0.1:{server.server_port}/fhir"))
    server.serve_forever()


class _Bulk(BaseHTTPRequestHandler):
    folder: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        kind = self.path.rpartition("/")[2]
        if "$export" in self.path:
            self._answer(202, b"", {"Content-Location": f"{origin}/status"})
        elif self.path == "/status":
            output = [{"type": one, "url": f"{origin}/files/{one}"} for one in KINDS]
            manifest = {"transactionTime": "2026-01-01T00:00:00Z", "requiresAccessToken": False, "output": output}
            self._answer(200, json.dumps(manifest).encode(), {"Content-Type": "application/json"})
        elif kind in KINDS:
            self._file(self.folder / f"{kind}.ndjson")
        elif kind == "metadata":
            statement = {"resourceType": "CapabilityStatement", "status": "active", "fhirVersion": "4.0.1"}
            self._answer(200, json.dumps(statement).encode(), {"Content-Type": "application/fhir+json"})
        else:
            self._answer(404, b"", {})

    def do_DELETE(self) -> None:
        self._answer(202, b"", {})

    def _file(self, path: Path) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/fhir+ndjson")
        self.send_header("Content-Length", str(path.stat().st_size))
        self.end_headers()
        with path.open("rb") as file:
            shutil.copyfileobj(file, self.wfile)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
