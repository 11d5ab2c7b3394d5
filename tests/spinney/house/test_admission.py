"""A steward's answer: good for one model, one round and one word, whoever carries it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from spinney.house.admission import Admission, SignatureRefused, admission_of
from spinney.house.audit import Audit
from spinney.house.keys import Identity, verify

WARDEN, STRANGER = Identity.new(), Identity.new()
STEWARDS = {"warden": WARDEN.public.hex()}
ASKED = Admission("wood", "5" * 64, 7, "ab" * 32)


@pytest.mark.parametrize("approve", [True, False])
def test_an_answer_that_a_steward_has_signed_counts(approve: bool):
    ASKED.check(STEWARDS, "warden", approve, f" {ASKED.sign(WARDEN, approve)}\n")


def test_a_yes_is_no_no():
    with pytest.raises(SignatureRefused, match=r"spinney admission sign wood 7 --no$"):
        ASKED.check(STEWARDS, "warden", False, ASKED.sign(WARDEN, True))


@pytest.mark.parametrize("other", [{"study": "meadow"}, {"digest": "6" * 64}, {"round": 8}, {"model": "cd" * 32}])
def test_an_answer_is_about_one_model_of_one_round_of_one_study(other: dict):
    with pytest.raises(SignatureRefused, match="not the signature of warden"):
        ASKED.check(STEWARDS, "warden", True, replace(ASKED, **other).sign(WARDEN, True))


@pytest.mark.parametrize("signature", ["", "yes", "00" * 64, "0" * 127])
def test_what_is_no_signature_is_refused(signature: str):
    with pytest.raises(SignatureRefused, match="not the signature of warden"):
        ASKED.check(STEWARDS, "warden", True, signature)


def test_nobody_is_a_steward_who_is_not_listed():
    with pytest.raises(SignatureRefused, match="owl is no steward of this site; it has warden"):
        ASKED.check(STEWARDS, "owl", True, ASKED.sign(STRANGER, True))
    with pytest.raises(SignatureRefused, match="lists no steward; add stewards"):
        ASKED.check({}, "warden", True, ASKED.sign(WARDEN, True))


def test_what_was_decided_can_be_verified_from_the_log_for_ever(tmp_path: Path):
    audit = Audit(tmp_path / "audit.jsonl")
    ASKED.record(audit, "warden", False, ASKED.sign(WARDEN, False), datetime(2026, 3, 1, tzinfo=UTC))
    (entry,) = (line.entry for line in audit.lines())
    assert entry.words == "Decided by warden: the model of round 7 may not be used here."
    assert verify(WARDEN.public, ASKED.words(False), bytes.fromhex(entry.signature))
    assert (entry.round, entry.digest) == (7, ASKED.model)


def test_a_round_s_result_says_what_there_is_to_decide():
    study = SimpleNamespace(name="wood", digest="5" * 64)
    assert admission_of(study, {"round": 7, "choice": {"model": "ab" * 32}}) == ASKED
