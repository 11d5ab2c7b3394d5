"""A FHIR server with traps that has a hundred observations of three patients, and a pull from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.fhir.rest import Puller, observation, patient
from tests.servers.fhir_traps import FhirTraps


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with FhirTraps([*(patient(n) for n in range(3)), *(observation(n) for n in range(100))]) as traps:
        yield traps


@pytest.fixture
def pull(tmp_path: Path) -> Puller:
    return Puller(tmp_path)
