"""Nightly scores: from open rows to what the model says of them, and no trace of who they are."""

from __future__ import annotations

import stat

import pytest

from spinney.cohort.handover import Handover
from spinney.errors import SourceFailed
from tests import made_up
from tests.made_up import pull_open_at
from tests.spinney.scoring.tonight import NOW, OPEN, scores, table


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
