"""Who the scored patients are: in private, of open rows only, and not an hour longer than needed."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pytest

from spinney.cohort.handover import Handover
from spinney.cohort.vault import Vault
from spinney.errors import SourceFailed


@pytest.fixture
def handover(tmp_path: Path) -> Handover:
    made = Handover(Vault(tmp_path), "wood")
    made.keep_identifiers(pa.chunked_array([["mrn-1", "mrn-2"], ["mrn-1"]]))
    return made


def test_a_patient_is_found_by_the_hash_that_the_vault_gives(handover: Handover):
    hashed = handover.vault.pseudonyms(pa.chunked_array([["mrn-1", "mrn-2"]])).to_pylist()
    assert handover.identifiers() == dict(zip(hashed, ["mrn-1", "mrn-2"], strict=True))


def test_nobody_else_can_read_it(handover: Handover):
    (file,) = handover.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(handover.folder.stat().st_mode) == 0o700


def test_what_an_earlier_run_left_goes_with_the_next(handover: Handover):
    handover.keep_scores(pa.table({"patient": ["h"], "probability": [0.5]}))
    handover.keep_identifiers(pa.chunked_array([["mrn-3"]]))
    assert set(handover.identifiers().values()) == {"mrn-3"}
    with pytest.raises(SourceFailed, match="start site-score again"):
        handover.scores()


def test_scores_come_back_as_they_were_kept(handover: Handover):
    scores = pa.table({"patient": ["h1", "h2"], "probability": [0.25, 1 / 3]})
    handover.keep_scores(scores)
    assert handover.scores().equals(scores)


def test_once_forgotten_nobody_can_be_found(handover: Handover):
    handover.forget()
    handover.forget()
    assert not handover.folder.exists()
    with pytest.raises(SourceFailed, match="what a pull for scoring left is gone"):
        handover.identifiers()


def test_a_damaged_file_is_one_line_that_quotes_nobody(handover: Handover):
    (handover.folder / "identifiers.parquet").write_bytes(b"mrn-1 was here")
    with pytest.raises(SourceFailed) as failed:
        handover.identifiers()
    assert "mrn" not in str(failed.value)


def test_studies_have_handovers_of_their_own(handover: Handover):
    Handover(handover.vault, "meadow").forget()
    assert len(handover.identifiers()) == 2
