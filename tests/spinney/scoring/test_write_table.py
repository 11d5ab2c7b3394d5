"""Scores in the hospital's table: once each, replaced by a newer model's, and no error that names a patient."""

from __future__ import annotations

import pandas as pd
import pytest
from sqlalchemy import create_engine, text

from spinney.errors import SourceFailed
from spinney.scoring.scores import ScoredBy
from spinney.scoring.settings import ScoresTable
from spinney.scoring.write_table import _table, replace, write_table
from tests.spinney.scoring.tonight import NOW, OPEN, SOURCE, scores


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
