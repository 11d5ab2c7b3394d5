"""Made-up resources on a server that exports them, and pulls night after night."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import Pulled, Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulk, FhirBulkSettings
from tests.servers.fhir_traps import FhirTraps

BOTH = (Wanted("Patient"), Wanted("Observation"))


def observation(number: int, updated: str = "2025-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    code = {"coding": [{"system": "http://loinc.org", "code": "8302-2"}]}
    meta = {"lastUpdated": updated}
    return {"resourceType": "Observation", "id": f"o{number}", "meta": meta, "code": code, **more}


@contextmanager
def bulk_server() -> Iterator[FhirTraps]:
    """Three patients and 250 observations, exported a hundred lines per file."""
    patients = [{"resourceType": "Patient", "id": f"p{n}"} for n in range(3)]
    with FhirTraps([*patients, *(observation(n) for n in range(250))], lines_per_file=100) as traps:
        yield traps


class Puller:
    """Pulls night after night with one store, and remembers how long it would have waited."""

    def __init__(self, folder: Path) -> None:
        self.staging, self.store = folder / "staging", folder / "store"
        self.staging.mkdir()
        self.waits: list[float] = []
        self.progress: list[tuple[str, int, int | None]] = []

    def __call__(self, server: FhirTraps, *wanted: Wanted, store: bool = False, **settings: Any) -> Pulled:
        chosen = FhirBulkSettings(**{"base_url": server.base_url, **settings})
        source = FhirBulk(chosen, self.store if store else None, partial(connect, sleep=self.waits.append))
        return source.pull(wanted or BOTH, self.staging, lambda *seen: self.progress.append(seen))


def read(pulled: Pulled, kind: str = "Observation") -> dict[str, Any]:
    lines = [json.loads(line) for path in pulled.files[kind] for line in path.read_text().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines) == pulled.read[kind]
    return {line["id"]: line for line in lines}
