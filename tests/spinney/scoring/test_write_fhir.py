"""Scores on a FHIR server: one valid resource each, created once, whatever went wrong the night before."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from fhir.resources.R4B.riskassessment import RiskAssessment

from spinney.errors import SourceFailed
from spinney.scoring.scores import Score, ScoredBy
from spinney.scoring.settings import ScoresFhir
from spinney.scoring.write_fhir import assessment, write_fhir
from spinney.study.study import Study
from tests.servers.fhir_traps import Stumble
from tests.servers.fhir_writes import FhirWrites
from tests.spinney.scoring.tonight import NOW, OPEN, SOURCE, scores


@pytest.fixture
def server():
    with FhirWrites() as started:
        yield started


def settings_of(server: FhirWrites, **more) -> ScoresFhir:
    return ScoresFhir(base_url=server.base_url, timeout_seconds=10, attempts=3, **more)


def stored(server: FhirWrites) -> list[dict]:
    return list(server.store.get("RiskAssessment", {}).values())


def test_every_score_is_a_valid_risk_assessment_of_its_patient_and_model(server, handover, wood):
    assert write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW) == OPEN
    for one in stored(server):
        RiskAssessment.model_validate(one)
    first = next(one for one in stored(server) if one["subject"]["reference"] == "Patient/mrn-00090")
    assert first["method"]["coding"][0] == {
        "system": "urn:spinney:model:wood",
        "code": "ab" * 32,
        "version": "3",
        "display": "wood version 3",
    }
    assert first["prediction"][0]["probabilityDecimal"] == pytest.approx(scores(handover)[0].probability, abs=1e-4)


@pytest.mark.parametrize("conditional", [True, False])
def test_a_second_night_with_the_same_model_creates_nothing(server, handover, wood, conditional):
    server.conditional = conditional
    assert write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW) == OPEN
    assert write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW) == 0
    assert len(stored(server)) == OPEN


def test_a_new_model_says_its_own(server, handover, wood):
    newer = ScoredBy("wood", 4, "cd" * 32)
    write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW)
    assert write_fhir(settings_of(server), scores(handover, newer), wood, newer, NOW) == OPEN


def test_a_run_that_broke_off_goes_on_where_it_stopped(server, handover, wood):
    server.stumbles.append(Stumble("/RiskAssessment", 400, skip=10))
    with pytest.raises(SourceFailed):
        write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW)
    written = len(stored(server))
    assert 0 < written < OPEN
    assert write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW) == OPEN - written
    assert len(stored(server)) == OPEN


def test_an_answer_that_was_lost_does_not_make_a_second_resource(server, handover, wood):
    server.stumbles.append(Stumble("/RiskAssessment", 503, retry_after="0", skip=4, times=2))
    assert write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW) == OPEN
    assert len(stored(server)) == OPEN


def test_a_server_that_can_t_find_scores_again_gets_one_and_no_more(server, handover, wood):
    server.finds = server.conditional = False
    with pytest.raises(SourceFailed, match="would be written again every night"):
        write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW)
    assert len(stored(server)) == 1


def test_patients_can_be_named_by_an_identifier_of_the_hospital(handover, wood):
    one = assessment(scores(handover)[0], wood, SOURCE, NOW, "urn:oid:1.2.3")
    assert one["subject"] == {"type": "Patient", "identifier": {"system": "urn:oid:1.2.3", "value": "mrn-00090"}}


def test_the_period_is_the_study_s_horizon(wood):
    asked = Study.model_validate(
        {**wood.model_dump(mode="json"), "label": {"name": "y", "source": {"outcome": "death", "horizon": "30d"}}}
    )
    score = Score("p", datetime(2026, 1, 1, tzinfo=UTC), 0.5, True, "k")
    period = assessment(score, asked, SOURCE, NOW, None)["prediction"][0]["whenPeriod"]
    assert period == {"start": "2026-01-01T00:00:00+00:00", "end": "2026-01-31T00:00:00+00:00"}


def test_no_address_and_no_log_names_a_patient(server, handover, wood, caplog):
    caplog.set_level(logging.DEBUG)
    write_fhir(settings_of(server), scores(handover), wood, SOURCE, NOW)
    asked = [one.path + str(one.query) + str(one.headers) for one in server.requests]
    assert not any("mrn" in words for words in asked)
    assert "mrn" not in caplog.text
