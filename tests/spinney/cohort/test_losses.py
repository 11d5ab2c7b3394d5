"""What became of events, by resource type and feature: every loss has a reason, and the notes are true."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.losses import plural, short
from spinney.cohort.pull_report import PullReport
from spinney.errors import CohortRejected
from tests.made_up import (
    NOW,
    RIPENER,
    STAY,
    WEIGHT,
    WEIGHTS,
    event,
    feature,
    observation,
    patient,
    pull_at,
    pulled,
    site,
    study,
    write,
)

OTHER = "http://loinc.org|718-7"
HB = feature("hb", "last", codes=[OTHER])


def told(folder: Path, resources: list[Any], *features: Any, **settings: Any) -> PullReport:
    """The report of a pull, whether or not it comes to a cohort."""
    report = PullReport()
    write(folder / "fhir", [patient(), STAY, RIPENER, *resources])
    with suppress(CohortRejected):
        pull_at(study(feature("weight", "last"), *features), site(folder, **settings), now=NOW, report=report)
    return report


def test_an_observation_with_another_answer_is_lost_for_that_and_a_second_coding_is_one(tmp_path: Path) -> None:
    of = {"text": "yes", "coding": [{"system": "local", "code": "1"}, {"system": "sct", "code": "yes"}]}
    said = [observation("2023-01-06", code=OTHER, valueCodeableConcept=one) for one in (of, of, {"text": "no"})]
    forgotten = observation("2023-01-06", code=OTHER)
    report = told(tmp_path, [*WEIGHTS, *said, forgotten], feature("hb", "exists", codes=[OTHER], answers=["yes"]))
    assert report.found["hb"] == 2
    assert {reason: count for (name, reason), count in report.lost.items() if name == "hb"} == {"another answer": 2}


def test_an_answer_that_nobody_gives_is_told_with_what_it_was_asked_of(tmp_path: Path) -> None:
    said = observation("2023-01-06", code=OTHER, valueString="no")
    report = told(tmp_path, [*WEIGHTS, said], feature("hb", "exists", codes=[OTHER], answers=["yes"]))
    assert "LOINC 718-7: 1 observations, but none counts (1 another answer)" in report.quoting


def test_every_event_of_a_feature_counts_or_has_a_reason(tmp_path: Path) -> None:
    wrong = [
        observation("2924-01-01", 70.0),
        observation("2023-01-06", 70.0, status="entered-in-error"),
        observation("the 6th", 70.0),
        observation("2023-01-06", 70.0, unit="stones"),
        observation("2023-01-06", valueString="heavy"),
    ]
    report = told(tmp_path, [*WEIGHTS, *wrong, observation("2023-01-06", 7.0, code=OTHER)], HB)
    assert report.found == {"weight": 4, "hb": 1}
    assert {reason: count for (name, reason), count in report.lost.items() if name == "weight"} == {
        "in the future": 1,
        "did not happen": 1,
        "broken date": 1,
        "unknown unit": 1,
        "no number": 1,
    }


def test_events_of_another_class_or_status_are_told_by_feature(tmp_path: Path) -> None:
    visits = {
        "name": "visits",
        "kind": "continuous",
        "range": [0, 9],
        "source": {"kind": "Encounter", "classes": ["EMER"], "statistic": "count"},
    }
    report = told(tmp_path, WEIGHTS, visits)
    assert (report.found["visits"], report.lost["visits", "another class"]) == (0, 2)
    assert "every Encounter: 2 encounters, but none counts (2 another class)" in report.quoting


def test_a_code_that_occurs_and_is_refused_each_time_is_not_said_to_be_missing(tmp_path: Path) -> None:
    undated = [observation("2023-01-01", 7.0, code=OTHER) | {"effectiveDateTime": None} for _ in range(3)]
    report = told(tmp_path, [*WEIGHTS, *undated], HB)
    assert "LOINC 718-7: 3 observations, but none counts (3 no date)" in report.quoting
    assert not any("0 of" in note for note in report.quoting)


def test_a_code_that_the_site_has_mapped_is_not_said_to_be_missing(tmp_path: Path) -> None:
    mapped = {"codes": {"urn:lab|HB": OTHER}}
    late = [observation("2924-01-01", 7.0, code="urn:lab|HB") for _ in range(8)]
    report = told(tmp_path, [*WEIGHTS, *late], HB, **mapped)
    assert "LOINC 718-7: 8 observations, but none counts (8 in the future)" in report.quoting
    assert not any("nearest" in note for note in report.quoting)


def test_codes_that_are_mapped_to_something_else_are_not_offered_as_neighbours(tmp_path: Path) -> None:
    local = [observation("2023-01-01", 7.0, code="urn:lab|718-8")]
    report = told(tmp_path, [*WEIGHTS, *local], HB, codes={"urn:lab|718-8": WEIGHT})
    (note,) = [one for one in report.quoting if "nearest" in one]
    assert note == "LOINC 718-7: 0 of 5 observations; nearest in your data: LOINC 29463-7 (4)"


def test_values_that_are_no_numbers_are_counted_under_the_studys_code_and_none_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "fhir" / "Observation.ndjson"
    write(tmp_path / "fhir", [observation("2023-01-02", 71.0) for _ in range(3)])
    path.write_text(path.read_text().replace("71.0", '"71,5"'))
    report = told(tmp_path, WEIGHTS)
    assert "LOINC 29463-7: 3 of 7 values are not numbers" in report.quoting
    assert any(
        "Observation: 3 of 7 set aside, value is not a number; numbers are written 7.2" in one for one in report.notes
    )
    assert "71,5" not in str(vars(report))


def test_resources_that_are_wholly_refused_are_told_by_type_and_reason(tmp_path: Path) -> None:
    undated = [event("Condition", "", "icd9|4280") | {"onsetDateTime": None} for _ in range(9)]
    heart = feature("heart", "exists", kind="Condition", codes=["icd9|4280"])
    report = told(tmp_path, [*WEIGHTS, *undated], heart)
    assert report.quarantined["Condition", "no date"] == 9
    assert "icd9 4280: 9 conditions, but none counts (9 no date)" in report.quoting


def test_a_source_that_shifts_its_dates_is_told_of_as_of(tmp_path: Path) -> None:
    write(tmp_path / "fhir", [patient(), observation("2924-01-01", 70.0)])
    with pytest.raises(CohortRejected, match=r"1 are in the future; if the source shifts its dates, say as_of in site"):
        pull_at(study(), site(tmp_path), now=NOW)


def test_two_features_of_the_same_values_count_a_wrong_unit_once(tmp_path: Path) -> None:
    of = study(feature("a", "last"), feature("b", "mean"))
    report = pulled(tmp_path, of, [patient(), STAY, RIPENER, observation("2023-01-05", 9.0, "stones")]).report
    assert report.quarantined == {("Observation", "unknown unit"): 1}
    assert len([one for one in report.quoting if "stones" in one]) == 1


def test_codes_and_types_are_told_as_people_say_them() -> None:
    assert (short("http://loinc.org|4548-4"), short("urn:x|4")) == ("LOINC 4548-4", "urn:x 4")
    assert plural("MedicationRequest") == "medication requests"
