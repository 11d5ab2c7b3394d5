"""Nightly scores: from open rows to the hospital's table and FHIR server, once each, and no trace of who they are."""

from __future__ import annotations

import logging
import stat
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fhir.resources.R4B.riskassessment import RiskAssessment
from sqlalchemy import create_engine, text

from spinney.choice.model import FederatedForest
from spinney.cohort.handover import Handover
from spinney.cohort.pull_report import OpenRows
from spinney.configuration.site import SiteSettings, read_site
from spinney.errors import SourceFailed, StudyInvalid
from spinney.scoring.scores import Score, ScoredBy, apply_model, to_write
from spinney.scoring.settings import ScoresFhir, ScoresTable
from spinney.scoring.write_fhir import assessment, write_fhir
from spinney.scoring.write_table import _table, replace, write_table
from spinney.simulate import pooled_forest
from spinney.study.study import Study
from tests import made_up
from tests.made_up import pull_open_at
from tests.servers.fhir_traps import Stumble
from tests.servers.fhir_writes import FhirWrites
from tests.spinney.in_process import cohorts, study

NOW = datetime(2026, 3, 14, 2, 30, tzinfo=UTC)
SOURCE = ScoredBy("wood", 3, "ab" * 32)
OPEN = 30


@pytest.fixture(scope="module")
def wood() -> Study:
    return study()


@pytest.fixture(scope="module")
def model(wood: Study) -> FederatedForest:
    return pooled_forest(wood, cohorts(wood))


def table(rows: int = 120) -> pd.DataFrame:
    """Finished rows, of which the last thirty have no outcome yet."""
    rng = np.random.default_rng(5)
    made = pd.DataFrame(rng.random((rows, 4)), columns=[f"x{place}" for place in range(4)])
    made["y"] = np.where(np.arange(rows) < rows - OPEN, (made["x0"] > 0.5).astype(int).astype(str), None)
    made["patient"] = [f"mrn-{number:05d}" for number in range(rows)]
    made["index_time"] = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(rows), unit="h")
    return made


@pytest.fixture
def site(tmp_path: Path) -> SiteSettings:
    table().to_csv(tmp_path / "his.csv", index=False)
    return SiteSettings(name="ash", home=tmp_path / "home", source={"kind": "files", "table": tmp_path / "his.csv"})


@pytest.fixture
def pulled(site: SiteSettings, wood: Study) -> OpenRows:
    return pull_open_at(wood, site, now=NOW)


@pytest.fixture
def handover(site: SiteSettings, wood: Study, model: FederatedForest, pulled: OpenRows) -> Handover:
    made = Handover(site.vault, wood.name)
    made.keep_scores(apply_model(site.vault, pulled.unripe, wood, model))
    return made


def scores(handover: Handover, source: ScoredBy = SOURCE) -> list[Score]:
    return list(to_write(handover, source, "wood"))


# ---------------------------------------------------------------------------------------------------------------
# Who they are


def test_only_open_rows_are_scored_and_only_their_patients_are_known(handover, pulled):
    assert (pulled.unripe.rows, pulled.cohort.rows) == (OPEN, 120 - OPEN)
    assert {*handover.identifiers().values()} == {f"mrn-{number:05d}" for number in range(90, 120)}


def test_a_score_is_what_the_model_says_about_that_patient(handover, model):
    asked = table().iloc[90:]
    expected = dict(zip(asked["patient"], model.predict_proba(asked[["x0", "x1", "x2", "x3"]])[:, 1], strict=True))
    assert {one.patient: pytest.approx(one.probability) for one in scores(handover)} == expected
    assert all(one.decision == (one.probability >= model.threshold_) for one in scores(handover))


def test_identifiers_are_in_one_private_file_and_gone_after_the_write_back(site, handover):
    holding = [path for path in site.home.rglob("*") if path.is_file() and b"mrn-0009" in path.read_bytes()]
    assert [path.name for path in holding] == ["identifiers.parquet"]
    assert stat.S_IMODE(holding[0].stat().st_mode) == 0o600
    handover.forget()
    assert not handover.folder.exists()
    with pytest.raises(SourceFailed, match="start site-score again"):
        handover.identifiers()


def test_the_next_pull_deletes_what_a_killed_run_left(site, wood, handover):
    table().iloc[:91].to_csv(site.source.table, index=False)
    pull_open_at(wood, site, now=NOW)
    assert {*handover.identifiers().values()} == {"mrn-00090"}
    with pytest.raises(SourceFailed):
        handover.scores()


def test_rows_can_be_scored_before_any_outcome_is_known(site, wood):
    table().iloc[90:].to_csv(site.source.table, index=False)
    pulled = pull_open_at(wood, site, now=NOW)
    assert (pulled.cohort, pulled.unripe.rows) == (None, OPEN)


def test_patients_of_a_fhir_source_are_known_by_the_id_of_their_resource(tmp_path):
    stays = [made_up.encounter("2023-12-10T08:00:00Z", "2023-12-20T08:00:00Z", who=name) for name in ("ann", "bob")]
    resources = [
        made_up.patient("ann"),
        made_up.patient("bob"),
        *stays,
        made_up.observation("2023-12-31T00:00:00Z", 70),
    ]
    made_up.write(tmp_path / "fhir", resources)
    site, asked = made_up.site(tmp_path), made_up.study()
    pulled = pull_open_at(asked, site, now=made_up.NOW)
    assert pulled.unripe.rows == 2
    assert {*Handover(site.vault, asked.name).identifiers().values()} == {"ann", "bob"}


def test_a_table_without_patients_can_t_be_scored(site, wood):
    nobody = site.model_copy(update={"source": site.source.model_copy(update={"patient_column": None})})
    with pytest.raises(SourceFailed, match="name patient_column and index_time_column"):
        pull_open_at(wood, nobody, now=NOW)


def test_a_score_never_shows_whose_it_is(handover):
    assert "mrn" not in repr(scores(handover))


# ---------------------------------------------------------------------------------------------------------------
# The table


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> ScoresTable:
    return ScoresTable(url=request.getfixturevalue(request.param)())


def rows(settings: ScoresTable) -> list[dict]:
    engine = create_engine(settings.url)
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {settings.table} ORDER BY patient")).mappings().all()
    engine.dispose()
    return [dict(row) for row in found]


def test_scores_are_written_once_and_again_without_duplicates(database, handover):
    for _ in range(2):
        assert write_table(database, scores(handover), "wood", SOURCE, NOW) == OPEN
    written = rows(database)
    assert len(written) == OPEN
    assert written[0]["patient"] == "mrn-00090"
    assert (written[0]["model"], written[0]["version"], written[0]["model_digest"]) == ("wood", 3, "ab" * 32)


def test_a_new_version_replaces_the_scores_of_the_old_one(database, handover):
    write_table(database, scores(handover), "wood", SOURCE, NOW)
    newer = ScoredBy("wood", 4, "cd" * 32)
    write_table(database, scores(handover, newer), "wood", newer, NOW)
    assert {row["version"] for row in rows(database)} == {4}
    assert len(rows(database)) == OPEN


def test_another_study_has_rows_of_its_own(database, handover):
    for name in ("wood", "meadow"):
        write_table(database, scores(handover), name, SOURCE, NOW)
    assert len(rows(database)) == 2 * OPEN


def test_a_database_without_an_upsert_gets_the_same_rows(sqlite, handover):
    settings = ScoresTable(url=sqlite())
    write_table(settings, scores(handover), "wood", SOURCE, NOW)
    before = rows(settings)
    engine = create_engine(settings.url)
    with engine.begin() as connection:
        plain = [
            {**row, "index_time": pd.Timestamp(row["index_time"]).to_pydatetime(), "scored_at": NOW, "version": 9}
            for row in before
        ]
        replace(connection, _table(settings), plain)
    engine.dispose()
    assert [row["version"] for row in rows(settings)] == [9] * OPEN


def test_a_failed_write_leaves_nothing_and_tells_nothing_of_patients(sqlite, handover):
    settings = ScoresTable(url=sqlite("CREATE TABLE spinney_scores (patient TEXT PRIMARY KEY)"))
    with pytest.raises(SourceFailed, match="other columns") as failed:
        write_table(settings, scores(handover), "wood", SOURCE, NOW)
    assert "mrn" not in str(failed.value)
    assert failed.value.__suppress_context__
    assert rows(settings) == []


def test_a_database_that_is_away_may_be_back_later(handover):
    away = ScoresTable(url="postgresql+psycopg://nobody@127.0.0.1:9/none")
    with pytest.raises(SourceFailed, match="can't be reached") as failed:
        write_table(away, scores(handover), "wood", SOURCE, NOW)
    assert failed.value.transient


def test_a_missing_password_is_asked_for_by_the_name_of_its_variable(handover):
    settings = ScoresTable(url="postgresql+psycopg://nobody@localhost/none", password_env="SPINNEY_NOT_SET")
    with pytest.raises(SourceFailed, match="SPINNEY_NOT_SET"):
        write_table(settings, scores(handover), "wood", SOURCE, NOW)


# ---------------------------------------------------------------------------------------------------------------
# The FHIR server


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


# ---------------------------------------------------------------------------------------------------------------
# Settings


def written(folder: Path, scores: str) -> Path:
    path = folder / "site.yaml"
    path.write_text(f"name: ash\nhome: home\nsource: {{kind: files, table: his.csv}}\nscores: {scores}\n")
    return path


def test_paths_of_a_database_file_are_relative_to_the_site_s_file(tmp_path):
    site = read_site(written(tmp_path, "{table: {url: 'sqlite:///scores.db'}}"))
    assert site.scores.table.url == f"sqlite:///{tmp_path / 'scores.db'}"


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ("{}", "scores needs table, fhir or both"),
        ("{table: {url: 'postgresql://me:secret@db/his'}}", "url must hold no password"),
        ("{fhir: {base_url: 'ftp://x'}}", "base_url must look like"),
    ],
)
def test_wrong_settings_say_what_to_do(tmp_path, scores, words):
    with pytest.raises(StudyInvalid, match=words):
        read_site(written(tmp_path, scores))
