"""A night of scoring: whom the champion speaks about, where it is written, and that nobody is known afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from spinney.configuration.site import SiteSettings
from spinney.configuration.study_file import write_study
from spinney.connectors.mlflow import lineage_of
from spinney.errors import SourceFailed, StudyInvalid
from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.scoring.score_night import NoChampion, ScoreNight
from spinney.scoring.settings import ScoresSettings, ScoresTable
from spinney.study.study import Study
from spinney.tasks.site import score_night_of, watch_of
from tests.servers.migrated import registry_in
from tests.spinney.in_process import Wood, cohorts
from tests.spinney.scoring.tonight import NOW, OPEN, table


@pytest.fixture(scope="module")
def outcome(wood: Study):
    federation = Wood(wood, cohorts(wood))
    federation.run()
    return federation.outcomes["ash"]


@pytest.fixture
def scored_site(site: SiteSettings, wood: Study, tmp_path: Path) -> SiteSettings:
    """A site that has approved the study and wants scores in a table."""
    write_study(wood, tmp_path / "study.yaml")
    Approvals(site.home, wood.name).approve_study(tmp_path / "study.yaml")
    table = ScoresTable(url=f"sqlite:///{tmp_path / 'scores.db'}")
    return site.model_copy(update={"scores": ScoresSettings(table=table)})


def tonight(site: SiteSettings) -> ScoreNight:
    """At the hour of the made-up patients."""
    return replace(score_night_of(site), now=NOW)


@pytest.fixture
def night(scored_site: SiteSettings, wood: Study, outcome) -> ScoreNight:
    """The same with a champion."""
    registry = registry_in(scored_site.home)
    version = registry.register(wood, outcome, lineage_of(wood, "ash", outcome.model, 1))
    registry.promote(wood.name, version.number)
    return tonight(scored_site)


def test_without_a_champion_nobody_is_pulled_and_the_line_says_how_to_get_one(scored_site: SiteSettings):
    registry_in(scored_site.home)
    with pytest.raises(NoChampion, match="spinney model promote"):
        tonight(scored_site).pull()
    assert not list(scored_site.home.glob("vault/**/*.parquet"))


def test_without_a_place_for_scores_the_line_says_what_to_write(night: ScoreNight):
    nowhere = replace(night, scores=None)
    with pytest.raises(StudyInvalid, match=r"scores: \{table: \{url"):
        nowhere.pull()


def test_the_champion_speaks_about_every_open_row_and_is_counted(night: ScoreNight, outcome):
    said = night.apply_model(night.pull())
    asked = table().iloc[-OPEN:][["x0", "x1", "x2", "x3"]]
    assert (said.scored, said.new) == (OPEN, OPEN)
    assert said.called == outcome.model.predict(asked).sum()
    assert (said.source.model, said.source.version) == ("wood", 1)
    assert night.apply_model(night.pull()).new == 0


def test_what_was_written_is_in_the_table_and_in_the_log_as_a_count(night: ScoreNight):
    said = night.apply_model(night.pull())
    assert (night.write_table(said), night.write_fhir(said)) == (OPEN, 0)
    engine = create_engine(night.places.table.url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM spinney_scores")).scalar() == OPEN
    engine.dispose()
    (entry,) = (one.entry for one in Audit(night.home / "audit.jsonl").lines() if one.entry.kind == "Scores")
    assert entry.words == "30 scores of wood version 1 are in the table spinney_scores."


def test_who_the_patients_are_is_forgotten_however_the_night_ends(night: ScoreNight):
    def cut_off() -> None:
        with night.alone():
            night.pull()
            assert night.handover.identifiers()
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        cut_off()
    with pytest.raises(SourceFailed):
        night.handover.identifiers()


def test_a_second_run_is_told_that_the_first_is_at_it(night: ScoreNight):
    with night.alone(), pytest.raises(SourceFailed, match="another run scores for wood"), night.alone():
        pytest.fail("two at once")


def test_what_is_watched_is_the_version_that_has_spoken(night: ScoreNight, scored_site: SiteSettings, wood: Study):
    assert watch_of(scored_site, wood) is None
    night.apply_model(night.pull())
    seen = watch_of(scored_site, wood)
    assert (seen.version, seen.known, seen.waiting) == ("1", 0, OPEN)
