"""How many events of each code there are: what counts is counted, and few patients are not told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.code_counts import CodeCount, Counted, count_codes
from spinney.errors import CohortRejected
from spinney.study.study import Study
from tests.made_up import NOW, STAY, event, feature, patient, plain_study, site, study, write

ICD = "http://hl7.org/fhir/sid/icd-10"
PINNED = {"hf": {"files": {}, "descendants_of": [f"{ICD}|I50"], "codes": {ICD: ["I50*"], "lab": ["HF"]}}}


def counting(*codes: str) -> Study:
    words = study(feature("x", "count", kind="Condition")).model_dump(mode="json")
    words |= {"code_sets": {"hf": {"descendants_of": [f"{ICD}|I50"]}}, "pinned": PINNED}
    words["features"][0]["source"]["codes"] = list(codes)
    return Study.model_validate(words)


def illness(code: str, *people: int, **more: Any) -> list[dict[str, Any]]:
    return [event("Condition", "2023-01-02T10:00:00Z", code, who=f"p{number}", **more) for number in people]


def counts(folder: Path, *codes: str, conditions: list[dict[str, Any]], **settings: Any) -> dict[str, CodeCount]:
    write(folder / "fhir", [patient(f"p{number}") for number in range(12)] + [STAY, *conditions])
    of = counting(*codes)
    found = count_codes(of, site(folder, **settings).pull_plan(of.name), now=NOW)
    return {code: count for (kind, code), count in found.items() if kind == "Condition"}


def test_events_and_patients_are_counted_by_what_is_written_and_by_code(tmp_path: Path) -> None:
    made = [*illness(f"{ICD}|I50.1", *range(8)), *illness(f"{ICD}|I50.1", 0, 1), *illness(f"{ICD}|I50.9", *range(3, 9))]
    found = counts(tmp_path, f"{ICD}|I50*", f"{ICD}|I50.9", f"{ICD}|I51", conditions=made)
    one, nine = Counted(10, 8), Counted(6, 6)
    assert found[f"{ICD}|I50*"] == CodeCount(Counted(16, 9), {f"{ICD}|I50.1": one, f"{ICD}|I50.9": nine}, 0)
    assert found[f"{ICD}|I50.9"] == CodeCount(nine, {f"{ICD}|I50.9": nine}, 0)
    assert found[f"{ICD}|I51"] == CodeCount(Counted(0, 0), {}, 0)


def test_what_fewer_patients_than_the_smallest_leaf_have_is_not_counted_out(tmp_path: Path) -> None:
    made = [*illness(f"{ICD}|I50.1", 0, 1, 2), *illness(f"{ICD}|I50.2", 3, 4), *illness(f"{ICD}|J44", 0, 1, 2, 3)]
    found = counts(tmp_path, f"{ICD}|I50*", f"{ICD}|J44", conditions=made)
    assert found[f"{ICD}|I50*"] == CodeCount(Counted(5, 5), {}, 2)
    assert found[f"{ICD}|J44"] == CodeCount(Counted(None, None), {}, 1)


def test_a_set_counts_mapped_codes_and_its_beginnings(tmp_path: Path) -> None:
    made = [*illness("ward|7", *range(5)), *illness(f"{ICD}|I50.1", *range(5, 10))]
    found = counts(tmp_path, "@hf", conditions=made, codes={"ward|7": "lab|HF"})
    assert found["@hf"] == CodeCount(Counted(10, 10), {f"{ICD}|I50.1": Counted(5, 5), "lab|HF": Counted(5, 5)}, 0)


def test_events_that_do_not_count_and_those_of_patients_who_object_are_not_counted(tmp_path: Path) -> None:
    refuted = {"verificationStatus": {"coding": [{"code": "refuted"}]}}
    made = [*illness(f"{ICD}|I50", *range(8)), *illness(f"{ICD}|I50", 8, **refuted)]
    made += [event("Condition", "2031-01-01", f"{ICD}|I50", who="p9")]
    (tmp_path / "no.csv").write_text("p0\n")
    lists = [{"kind": "file", "path": tmp_path / "no.csv"}]
    found = counts(tmp_path, f"{ICD}|I50", conditions=made, opt_out=lists)
    assert found[f"{ICD}|I50"].total == Counted(7, 7)


def test_a_finished_table_has_no_codes(tmp_path: Path) -> None:
    of = plain_study()
    with pytest.raises(CohortRejected, match="a finished table has no codes"):
        count_codes(of, site(tmp_path).pull_plan(of.name))
