"""Made-up resources, and a pull over FHIR REST that remembers how long it would have waited."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import Pulled, Wanted
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from tests.servers.fhir_traps import FhirTraps

LOINC = "http://loinc.org"
OBSERVATIONS = [Wanted("Observation")]


def observation(number: int, code: str = "8302-2", **more: Any) -> dict[str, Any]:
    minute = f"{number // 60:02d}:{number % 60:02d}"
    return {
        "resourceType": "Observation",
        "id": f"o{number}",
        "meta": {"lastUpdated": f"2026-01-01T{minute}:00.000Z"},
        "status": "final",
        "code": {"coding": [{"system": LOINC, "code": code}]},
        "subject": {"reference": f"Patient/p{number % 3}"},
        "effectiveDateTime": f"{2000 + number % 20}-06-01T12:00:00+02:00",
        **more,
    }


def patient(number: int) -> dict[str, Any]:
    return {"resourceType": "Patient", "id": f"p{number}", "birthDate": "1970-01-01"}


class Puller:
    """Pulls from a server and remembers how long it would have waited."""

    def __init__(self, staging: Path) -> None:
        self.staging = staging
        self.waits: list[float] = []
        self.progress: list[tuple[str, int, int | None]] = []

    def __call__(self, server: FhirTraps, wanted: list[Wanted] = OBSERVATIONS, **settings: Any) -> Pulled:
        chosen = FhirRestSettings(**{"base_url": server.base_url, "page_size": 10, **settings})
        source = FhirRest(chosen, partial(connect, sleep=self.waits.append))
        return source.pull(wanted, self.staging, lambda *seen: self.progress.append(seen))
