"""Scores on a real FHIR server, which doesn't know If-None-Exist: written once all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from spinney.scoring.scores import Score, ScoredBy
from spinney.scoring.settings import ScoresFhir
from spinney.scoring.write_fhir import write_fhir
from tests.servers.fhir_npm import serving
from tests.spinney.in_process import study

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]

NOW = datetime(2026, 3, 14, 2, 30, tzinfo=UTC)
SOURCE = ScoredBy("wood", 3, "ab" * 32)
PATIENTS = [f"p{number}" for number in range(60)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("fhir")
    entries = [{"resource": {"resourceType": "Patient", "id": name}} for name in PATIENTS]
    (folder / "Patient.json").write_text(json.dumps({"resourceType": "Bundle", "type": "collection", "entry": entries}))
    with serving(folder) as url:
        yield url


def scores(version: str = "a") -> list[Score]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Score(name, start + timedelta(hours=number), number / 100, number > 30, f"{version}{number:05d}")
        for number, name in enumerate(PATIENTS)
    ]


def count(address: str) -> int:
    return int(httpx.get(f"{address}/RiskAssessment?_summary=count").json()["total"])


def test_every_score_is_there_once_however_often_it_is_written(address: str) -> None:
    settings, wood = ScoresFhir(base_url=address), study()
    assert write_fhir(settings, scores(), wood, SOURCE, NOW) == len(PATIENTS)
    assert write_fhir(settings, scores(), wood, SOURCE, NOW) == 0
    assert count(address) == len(PATIENTS)
    assert write_fhir(settings, scores("b"), wood, SOURCE, NOW) == len(PATIENTS)
    assert count(address) == 2 * len(PATIENTS)


def test_a_patient_s_scores_can_be_found_from_the_patient(address: str) -> None:
    found = httpx.get(f"{address}/RiskAssessment?subject=Patient/p40&_count=500").json()
    subjects = {entry["resource"]["subject"]["reference"] for entry in found["entry"]}
    assert subjects == {"Patient/p40"}
