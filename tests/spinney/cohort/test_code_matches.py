"""Prefixes, sets and any system, from resources to the table: as if every code had been written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spinney.study.study import Study
from tests.made_up import RIPENER, STAY, event, feature, frame, patient, pulled, study

ICD = "http://hl7.org/fhir/sid/icd-10"
CODES = [f"{ICD}|I50.1", f"{ICD}|I50.9", f"{ICD}|I5", "local|I50.9", f"{ICD}|J44.1", "lab|HF"]
CONDITIONS = [event("Condition", f"2023-01-0{2 + place}T10:00:00Z", code) for place, code in enumerate(CODES)]
EVERYBODY = [patient(), STAY, RIPENER, *CONDITIONS]


def counting(*codes: str, **more: Any) -> Study:
    words = study(feature("x", "count", kind="Condition")).model_dump(mode="json") | more
    words["features"][0]["source"]["codes"] = list(codes)
    return Study.model_validate(words)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([f"{ICD}|I50"], 0),
        ([f"{ICD}|I50*"], 2),
        ([f"{ICD}|I5*"], 3),
        ([f"{ICD}|*"], 4),
        (["*|I50.9"], 2),
        (["*|I50*"], 3),
        ([f"{ICD}|I50*", f"{ICD}|I50.1"], 2),
        ([f"{ICD}|K*"], 0),
        ([f"{ICD}|K*", f"{ICD}|J*"], 1),
    ],
)
def test_a_feature_counts_the_events_that_its_codes_mean(tmp_path: Path, codes: list[str], expected: int) -> None:
    assert frame(tmp_path, counting(*codes), EVERYBODY)["x"].tolist() == [expected]


def test_a_set_means_what_was_pinned_and_needs_no_file(tmp_path: Path) -> None:
    pinned = {"hf": {"files": {"hf.json": "0" * 64}, "codes": {ICD: ["I50*", "J44.1"], "local": ["nothing"]}}}
    of = counting("@hf", code_sets={"hf": {"files": ["hf.json"]}}, pinned=pinned)
    assert frame(tmp_path, of, EVERYBODY)["x"].tolist() == [3]


def test_a_local_code_is_matched_by_what_it_is_mapped_to(tmp_path: Path) -> None:
    mapped = {"lab|HF": f"{ICD}|I50.0", "local|I50.9": "other|X"}
    assert frame(tmp_path, counting(f"{ICD}|I50*"), EVERYBODY, codes=mapped)["x"].tolist() == [3]


def test_index_events_and_outcomes_are_chosen_by_prefix_too(tmp_path: Path) -> None:
    outcome = {"kind": "Condition", "codes": [f"{ICD}|J*"]}
    of = study(
        feature("x", "count", kind="Condition", codes=[f"{ICD}|I50.1"]),
        label={"outcome": "event", "horizon": "30d", "events": outcome},
        index={"kind": "Condition", "codes": [f"{ICD}|I50*"]},
    )
    rows = frame(tmp_path, of, [*EVERYBODY, event("Condition", "2023-12-01", f"{ICD}|J00", who="zoe")])
    assert rows[["x", "outcome"]].to_numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_prefix_that_nothing_matches_is_named_and_does_not_mean_everything(tmp_path: Path) -> None:
    result = pulled(tmp_path, counting(f"{ICD}|Z9*"), EVERYBODY)
    assert any(note.startswith("ICD-10 Z9*: 0 of 6 conditions; nearest") for note in result.report.quoting)
