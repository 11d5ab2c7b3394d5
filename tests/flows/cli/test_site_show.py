"""One look at a site's cohort, as people and scripts see it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spinney.flows.cli.site_show import PullProgress
from tests.flows.cli.stays import STUDY, resources, spinney
from tests.made_up import event, observation, write

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


def test_check_shows_the_cohort_and_what_would_leave(folder: Path) -> None:
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 0, answer.output
    assert "stays: 60 rows, 20 of them yes, and 0 whose outcome is still open." in answer.stdout
    row = next(line.split() for line in answer.stdout.splitlines() if line.strip().startswith("weight"))
    assert row == ["weight", "48", "12", "61", "80", "99", "kg"]
    assert "characteristic vector: age 0." in answer.stdout
    assert "a round would send (this command sends nothing):" in answer.stdout
    assert "no leaf of fewer than 20 patients" in answer.stdout
    assert (folder / "home" / "data-docs" / "stays.html").exists()


def test_check_shows_the_way_from_the_source_to_the_rows_as_it_was(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY.replace("cohort:\n", "cohort:\n  eligible: {age: [18, 82]}\n"))
    told = spinney("site", "check", "study.yaml").stdout
    flow = told.split("(and patients):\n")[1].splitlines()
    assert flow[:6] == [
        "  found in the source: 61 encounters (40)",
        "  - no index event of the study: 1 (0)",
        "  index events: 60 (40)",
        "  - age unknown: 0 (0); left 60 (40)",
        "  - age: 1 (1); left 59 (39)",
        "  - died before prediction time: 0 (0); left 59 (39)",
    ]
    assert flow[8:11] == [
        "  rows: 59 (39)",
        "  - the outcome is still open: 0 (0)",
        "  rows with a known outcome: 59 (39)",
    ]
    assert [line.split(":")[0] for line in flow[11:13]] == ["  in training", "  in test"]


def test_check_tells_scripts_the_same(folder: Path) -> None:  # noqa: ARG001
    answer = spinney("site", "check", "study.yaml", "--json")
    found = json.loads(answer.stdout)
    assert answer.exit_code == 0
    assert found["cohort"]["rows"] == 60
    assert found["takes_part"] is True
    assert found["features"][2]["missing"] == 12
    assert found["attrition"][0] == {
        "reason": None,
        "left_out": None,
        "patients_left_out": None,
        "title": "found in the source",
        "left": 61,
        "patients_left": 40,
    }
    assert [step["left"] for step in found["attrition"][1:]] == [60] * 5
    assert sum(part["rows"] for part in found["parts"]) == 60
    assert set(found["vector"]) == {"age", "sex=female", "sex=male", "weight"}
    assert found["quarantine"] == []
    assert found["drift"] is None


def test_a_long_pull_tells_how_far_it_is_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in ("1", "0"):
        monkeypatch.setenv("TTY_COMPATIBLE", terminal)
        with PullProgress() as progress:
            progress("Observation", 12_000, 20_000)
        shown = capsys.readouterr().err
        assert ("Observation" in shown and "12,000 rows" in shown) is (terminal == "1")


def test_small_cells_are_not_told(folder: Path) -> None:
    (folder / "fhir" / "Observation.ndjson").unlink()
    write(folder / "fhir", [observation("2023-03-02", 60.0, who="p1")])
    found = json.loads(spinney("site", "check", "study.yaml", "--json").stdout)
    told = {key: found["features"][2][key] for key in ("filled", "missing", "minimum", "median", "maximum")}
    assert told == dict.fromkeys(told)
    assert found["vector"]["weight"] is None


def test_a_later_cohort_is_compared_with_the_one_before(folder: Path) -> None:
    assert spinney("site", "check", "study.yaml").exit_code == 0
    heavier = [
        {**one, "valueQuantity": {"value": one["valueQuantity"]["value"] + 150, "code": "kg"}}
        for one in resources()
        if "valueQuantity" in one
    ]
    (folder / "fhir" / "Observation.ndjson").unlink()
    write(folder / "fhir", heavier)
    answer = spinney("site", "check", "study.yaml")
    assert "weight: a large shift" in answer.stdout
    assert "the characteristic vector moved by" in answer.stdout


def test_a_critical_rule_is_shown_and_is_an_error(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY.replace("smallest_cohort: 10", "smallest_cohort: 50"))
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 2
    assert re.search(r"critical: at least 50 training patients \((\d+) of \1 fail\)", answer.stdout)
    assert "no characteristic vector:" in answer.stdout
    assert answer.stderr.startswith("at least 50 training patients (")
    scripts = spinney("site", "check", "study.yaml", "--json")
    assert scripts.exit_code == 2
    assert json.loads(scripts.stdout)["takes_part"] is False
    assert json.loads(scripts.stdout)["refused"] == answer.stderr.strip()


def spoilt(folder: Path, kind: str, *replacements: tuple[str, str]) -> None:
    """The same file with other words in it."""
    path = folder / "fhir" / f"{kind}.ndjson"
    text = path.read_text()
    for old, new in replacements:
        text = text.replace(old, new)
    path.write_text(text)


def rejected(folder: Path, study: str = STUDY) -> str:
    """What is told of a cohort of which nothing is left: people and scripts are told the same."""
    (folder / "study.yaml").write_text(study)
    answer, scripts = (spinney("site", "check", "study.yaml", *more) for more in ([], ["--json"]))
    assert answer.exit_code == scripts.exit_code == 2
    found = json.loads(scripts.stdout)
    assert (found["takes_part"], found["cohort"]) == (False, None)
    assert found["refused"] == answer.stderr.strip() == scripts.stderr.strip()
    for note in found["notes"]:
        assert f"  {note}\n" in answer.stdout
    return answer.stdout


NEEDS_WEIGHT = STUDY.replace("cohort:\n", "cohort:\n  eligible: {values: [weight]}\n")


def test_a_cohort_that_is_rejected_because_units_are_missing_says_so(folder: Path) -> None:
    spoilt(folder, "Observation", (', "code": "kg"', ""))
    told = rejected(folder, NEEDS_WEIGHT)
    assert "LOINC 29463-7: 32 values without a unit; say which in site.yaml under assumed_units" in told
    assert "weight: 0 count; no unit 32" in told


def test_a_cohort_that_is_rejected_because_birth_dates_are_written_otherwise_says_so(folder: Path) -> None:
    spoilt(folder, "Patient", *((f"19{year}-01-01", f"01.01.19{year}") for year in range(40, 80)))
    told = rejected(folder, STUDY.replace("cohort:\n", "cohort:\n  eligible: {age: [18, 120]}\n"))
    assert "Patient: 40 of 40 set aside, broken date; dates are written 2024-01-31, with or without a time" in told
    assert "  - age unknown: 60 (40); left 0 (0)\n" in told


def test_a_cohort_that_is_rejected_because_nobody_asks_for_patients_says_so(folder: Path) -> None:
    (folder / "fhir" / "Patient.ndjson").unlink()
    told = rejected(folder, STUDY.replace("cohort:\n", "cohort:\n  eligible: {age: [18, 120]}\n"))
    assert "Patient: none in this source, so nobody's age and sex are known" in told


def test_a_cohort_that_is_rejected_because_all_dates_are_in_the_future_says_so(folder: Path) -> None:
    for kind in ("Encounter", "Observation"):
        spoilt(folder, kind, ("2023-", "2923-"))
    told = rejected(folder)
    assert "Encounter: 61 of 61 are in the future; if the source shifts its dates, say" in told
    assert "Observation: 32; not used: in the future 32" in told
    assert "weight: 0 count; in the future 32" in told


def test_shifted_dates_are_read_by_what_the_site_says_counts_as_now(folder: Path) -> None:
    for kind in ("Encounter", "Observation"):
        spoilt(folder, kind, ("2023-", "2923-"))
    with (folder / "site.yaml").open("a") as file:
        file.write("as_of: 2923-12-31\n")
    answer = spinney("site", "check", "study.yaml")
    assert "  the source's dates are shifted: 2923-12-31 counts as now\n" in answer.stdout
    found = json.loads(spinney("site", "check", "study.yaml", "--sample", "296d", "--json").stdout)
    assert (found["as_of"], found["cohort"]["rows"]) == ("2923-12-31", 20)
    assert found["left_out"] == {"before the first day of the study": 40}


def test_a_cohort_that_is_rejected_for_want_of_index_events_shows_the_classes_that_the_source_has(folder: Path) -> None:
    spoilt(folder, "Encounter", ('"IMP"', '"inpatient"'))
    told = rejected(folder)
    assert "index events: 0 of 61 encounters (61 another class); classes in your data: inpatient (60), AMB (1)" in told


def test_every_file_is_shown_with_what_it_holds(folder: Path) -> None:
    (folder / "fhir" / "Group.ndjson").write_text('{"resourceType": "Group"}\n')
    (folder / "fhir" / "readme.txt").touch()
    told = spinney("site", "check", "study.yaml").stdout
    assert "  Group.ndjson: 1 Group (not asked for)\n" in told
    assert "  Observation.ndjson: 32 Observation\n" in told
    assert "  readme.txt: not read: its content is unknown here\n" in told


FAILING = """  - name: heart_failure
    kind: binary
    source: {kind: Condition, codes: ["http://hl7.org/fhir/sid/icd-10|I50.9"], statistic: exists}
label:"""


def test_a_feature_that_nobody_has_mapped_keeps_the_site_out_until_its_people_accept_it_by_name(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY.replace("label:", FAILING))
    write(folder / "fhir", [event("Condition", "2023-03-01", "urn:lab|HF", who=f"p{number}") for number in range(20)])
    answer = spinney("site", "check", "study.yaml")
    line = 'accepted: {empty: ["heart_failure"]}'
    assert answer.exit_code == 2
    assert "ICD-10 I50.9: 0 of 20 conditions; nearest in your data: urn:lab HF (20)" in answer.stdout
    assert f"where that is right here, write in site.yaml: {line}" in answer.stdout
    assert answer.stderr.startswith("heart_failure has values (60 failed)")
    with (folder / "site.yaml").open("a") as file:
        file.write(f"{line}\n")
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 0, answer.output
    (folder / "site.yaml").write_text(
        "name: north\nhome: home\nsource: {kind: files, path: fhir}\n"
        'codes: {"urn:lab|HF": "http://hl7.org/fhir/sid/icd-10|I50.9"}\n'
    )
    assert spinney("site", "check", "study.yaml").exit_code == 0


def test_a_feature_that_nobody_has_since_the_last_cohort_keeps_the_site_out(folder: Path) -> None:
    assert spinney("site", "check", "study.yaml").exit_code == 0
    spoilt(folder, "Observation", ("29463-7", "3141-9"))
    for _ in range(2):  # a cohort that is refused is nothing to go by
        answer = spinney("site", "check", "study.yaml")
        assert answer.exit_code == 2
        assert answer.stderr.startswith("weight has values, as in the last cohort (60 failed)")


def test_a_type_that_is_wholly_refused_keeps_the_site_out(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY.replace("label:", FAILING))
    some = [
        event("Condition", "2023-03-01", "http://hl7.org/fhir/sid/icd-10|I50.9", who=f"p{number}")
        for number in range(2)
    ]
    write(folder / "fhir", [{**one, "onsetDateTime": "01.03.2023"} for one in some])  # far below 5 % of what was read
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 2
    assert "Condition: 2; in quarantine: broken date 2" in answer.stdout
    assert answer.stderr.startswith("Condition: something can be used (2 failed): also heart_failure has values")
    assert 'accepted: {refused: ["Condition"], empty: ["heart_failure"]}' in answer.stderr
