"""The events that the study asks for: which are left out and why, in however many buckets."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.cohort import selected_events as relevant
from spinney.cohort.vault import Vault
from tests.made_up import (
    ORDERED,
    RIPENER,
    STAY,
    WEIGHTS,
    crowd,
    feature,
    observation,
    patient,
    pulled,
    study,
)


def test_events_from_the_future_are_not_used_and_make_nothing_ripe(tmp_path: Path) -> None:
    resources = [patient(), STAY, RIPENER, *WEIGHTS, observation("2924-01-01", 70.0)]
    report = pulled(tmp_path, study(), resources).report
    assert report.unused == {("Observation", "in the future"): 1}
    assert report.watermark is not None
    assert report.watermark.year == 2023


def test_what_did_not_happen_is_not_used(tmp_path: Path) -> None:
    wrong = observation("2023-01-09T11:00:00Z", 999.0, status="entered-in-error")
    result = pulled(tmp_path, study(), [patient(), STAY, RIPENER, *WEIGHTS, wrong])
    assert Vault(tmp_path / "home").read(result.cohort)["weight"].to_pylist() == [79.0]
    assert result.report.unused == {("Observation", "did not happen"): 1}


@pytest.mark.parametrize("size", [100, 2])
def test_buckets_of_patients_change_nothing_even_if_some_are_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    resources = crowd(40)
    whole = pulled(tmp_path, study(*ORDERED), resources)
    monkeypatch.setattr(relevant, "BUCKET_EVENTS", size)
    (tmp_path / "fhir").rename(tmp_path / "once")
    in_parts = pulled(tmp_path, study(*ORDERED), resources)
    assert in_parts.cohort.digest == whole.cohort.digest


def test_a_code_without_a_match_is_named_with_what_looks_like_it(tmp_path: Path) -> None:
    of = study(feature("weight", "last"), feature("x", "last", codes=["http://loinc.org|29463-9"]))
    notes = pulled(tmp_path, of, [patient(), STAY, RIPENER, *WEIGHTS]).report.quoting
    assert "LOINC 29463-9: 0 of 4 observations; nearest in your data: LOINC 29463-7 (4)" in notes


def test_kinds_without_recording_times_are_named_in_the_report(tmp_path: Path) -> None:
    report = pulled(tmp_path, study(), [patient(), STAY, RIPENER, *WEIGHTS]).report
    assert report.unrecorded == {"Encounter": (2, 2), "Observation": (4, 4)}
    assert any("Observation: 4 of 4 have no recording time" in note for note in report.notes)
