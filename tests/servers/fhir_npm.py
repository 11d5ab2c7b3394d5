"""A real FHIR server from npm, on a free port of 127.0.0.1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.npm import install, node

HERE = Path(__file__).parents[1] / "services" / "fhir-server"
PROGRAM = HERE / "node_modules" / "@healro" / "smart-fhir-server" / "dist" / "cli" / "bin.js"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The server with the bundles of a folder in it; its address."""
    install(HERE)
    where = ("--host", "127.0.0.1", "--no-auth", "--data-dir", folder, "--log-level", "error")
    with node(lambda port: (PROGRAM, "--port", port, *where), "/metadata", folder) as address:
        yield address
