"""The whole way from a site's data to its cohort: maps, validation, imputation, finished tables, what stays private."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from spinney.errors import CohortRejected, SourceFailed
from tests.made_up import (
    NOW,
    RIPENER,
    STAY,
    WEIGHED,
    coded,
    encounter,
    feature,
    frame,
    observation,
    patient,
    plain_study,
    pull_at,
    pulled,
    site,
    study,
    write,
)


def test_a_pull_leaves_a_cohort_and_nothing_else(tmp_path: Path) -> None:
    result = pulled(tmp_path, study(), WEIGHED)
    assert result.report.read == {"Patient": 1, "Encounter": 2, "Observation": 1}
    assert (result.cohort.rows, result.unripe.rows) == (1, 0)
    left = {path.name for path in (tmp_path / "home" / "vault").rglob("*") if path.is_file()}
    refs = {result.cohort.path, result.unripe.path}
    kept = {ref.name for ref in refs} | {ref.with_suffix(".json").name for ref in refs}
    assert left == kept | {"key", "stays.lock"}


def test_no_identifier_or_other_column_of_the_source_is_anywhere_in_the_vault(tmp_path: Path) -> None:
    canary = "CANARY-17"
    named = [
        patient(canary, contact=[{"name": {"family": canary}}]),
        encounter("2023-01-01", "2023-01-10", who=canary),
        RIPENER,
        observation("2023-01-05", 70.0, who=canary, note=[{"text": canary}]),
    ]
    report = pulled(tmp_path, study(), named).report
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or canary.encode() not in path.read_bytes()
    assert canary not in repr(report)


def test_a_site_maps_its_own_codes(tmp_path: Path) -> None:
    sex = {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}}
    local = [patient(sex="W"), STAY, RIPENER, observation("2023-01-05", 70.0, code="lab|GEW")]
    maps = {"codes": {"lab|GEW": "http://loinc.org|29463-7", "W": "female"}}
    rows = frame(tmp_path, study(feature("weight", "last"), sex), local, **maps)
    assert rows[["weight", "sex"]].to_numpy().tolist() == [[70.0, "female"]]


@pytest.mark.parametrize(("extent", "invalid", "checked"), [("all", 2, 4), ("sample", 1, 2), ("none", 0, None)])
def test_resources_that_are_no_valid_fhir_are_in_quarantine_as_far_as_one_looks(
    tmp_path: Path, extent: str, invalid: int, checked: int | None
) -> None:
    good = [observation(f"2023-01-0{day}", 70.0) for day in (1, 2)]
    bad = [observation(f"2023-01-0{day}", 70.0) | {"status": None, "nonsense": True} for day in (3, 4)]
    lines = [patient(), STAY, RIPENER, good[0], bad[0], good[1], bad[1]]
    report = pulled(tmp_path, study(), lines, validate=extent, validation_sample=2).report
    assert report.quarantined[("Observation", "not valid FHIR")] == invalid
    assert report.validated.get("Observation") == checked


def test_a_truncated_line_costs_one_observation_and_not_the_night(tmp_path: Path) -> None:
    half = json.dumps(observation("2023-01-06", 99.0))[:120]
    result = pulled(tmp_path, study(), [*WEIGHED, half])
    assert result.report.quarantined == {("Observation", "not a FHIR resource"): 1}
    assert result.report.rows == 1
    assert result.report.quarantined_share == pytest.approx(1 / 5)
    assert json.loads(json.dumps(result.report.plain()))["quarantined"] == {"Observation: not a FHIR resource": 1}


def test_an_endless_line_costs_one_observation_and_not_the_night(tmp_path: Path) -> None:
    result = pulled(tmp_path, study(), [*WEIGHED, '{"resourceType": "Observation", "id": "' + "x" * (70 * 2**20)])
    assert result.report.quarantined == {("Observation", "not a FHIR resource"): 1}
    assert result.cohort.rows == 1


@pytest.mark.parametrize("mebibytes", [5, 40])
def test_a_resource_that_is_larger_than_most_counts_like_any_other(tmp_path: Path, mebibytes: int) -> None:
    long = observation("2023-01-06", 99.0) | {"note": [{"text": "x" * (mebibytes * 2**20)}]}
    assert frame(tmp_path, study(), [*WEIGHED, long])["weight"].tolist() == [99.0]


def test_what_is_found_wanting_is_noted(tmp_path: Path) -> None:
    lines = [STAY, RIPENER, observation("2023-01-05", valueString="heavy")]
    notes = pulled(tmp_path, study(), lines).report.notes
    assert "Patient: none in this source, so nobody's age and sex are known" in notes
    assert "1 index events are of patients whom the source does not describe" in notes
    assert "LOINC 29463-7: 1 observations, but none has a number" in notes


def test_progress_is_told_by_kind(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    write(tmp_path / "fhir", WEIGHED)
    pull_at(study(), site(tmp_path), now=NOW, progress=lambda *how_far: told.append(how_far))
    assert ("Encounter", 2, 2) in told


def test_times_of_a_site_without_offsets_are_in_its_time_zone(tmp_path: Path) -> None:
    stay = encounter("2023-01-01T10:00:00", "2023-01-10T10:00:00")
    # strictly, FHIR wants an offset, so validation would put the stay into quarantine
    rows = frame(tmp_path, study(), [patient(), stay, RIPENER], timezone="Europe/Berlin", validate="none")
    assert rows["index_time"].tolist() == [pd.Timestamp("2023-01-10T09:00:00")]


def test_a_study_without_a_definition_cannot_read_events(tmp_path: Path) -> None:
    write(tmp_path / "fhir", WEIGHED)
    with pytest.raises(SourceFailed, match="this site needs `table`"):
        pull_at(plain_study(), site(tmp_path), now=NOW)


def test_a_source_without_a_matching_event_says_so(tmp_path: Path) -> None:
    write(tmp_path / "fhir", [patient(), observation("2023-01-01", 1.0, code="x|1") | {"code": coded("x|1")}])
    with pytest.raises(CohortRejected, match=r"map local codes in site\.yaml"):
        pull_at(study(), site(tmp_path), now=NOW)
