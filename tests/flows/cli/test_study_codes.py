"""spinney study pin and spinney study codes: from files of codes to what a site has of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.cli.stays import STUDY, resources, spinney
from tests.made_up import WEIGHT, write

SET = "code_sets: {body: {files: [body.csv]}}\n"
CHOSEN = STUDY.replace('codes: ["http://loinc.org|29463-7"]', 'codes: ["@body", "http://loinc.org|2946*", "*|x"]')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(CHOSEN + SET)
    (tmp_path / "body.csv").write_text(f"code\n{WEIGHT}\nhttp://loinc.org|8302-2\n")
    write(tmp_path / "fhir", resources())
    (tmp_path / "site.yaml").write_text("name: north\nsource: {kind: files, path: fhir}\n")
    assert spinney("study", "pin", tmp_path / "study.yaml").exit_code == 0
    return tmp_path


def test_a_second_pin_says_that_nothing_is_new(folder: Path) -> None:
    answer = spinney("study", "pin", folder / "study.yaml")
    assert "@body: 2 codes from body.csv (" in answer.output
    assert "(new)" not in answer.output
    assert "was pinned already; digest " in answer.output
    told = json.loads(spinney("study", "pin", folder / "study.yaml", "--json").stdout)
    assert (told["changed"], told["code_sets"]["body"]["codes"]) == ([], 2)


def test_codes_are_shown_with_what_they_mean_and_where_that_is_from(folder: Path) -> None:
    answer = spinney("study", "codes", folder / "study.yaml")
    assert answer.exit_code == 0
    assert answer.output.splitlines()[:7] == [
        "weight: Observation",
        "  @body: 2 codes, pinned",
        "    http://loinc.org: 29463-7, 8302-2",
        answer.output.splitlines()[3],
        "  http://loinc.org|2946*: every code that begins with 2946 of http://loinc.org",
        "  *|x: the code x of any system",
        "index event: Encounter, every code",
    ]
    assert answer.output.splitlines()[3].startswith("    from body.csv, SHA-256 ")


def test_a_site_s_events_are_counted_and_the_same_is_there_for_scripts(folder: Path) -> None:
    answer = spinney("study", "codes", folder / "study.yaml", "--site", folder / "site.yaml")
    assert answer.exit_code == 0, answer.output
    assert "    here: 32 events of 32 patients" in answer.output.splitlines()
    assert f"      {WEIGHT}: 32 events of 32 patients" in answer.output.splitlines()
    assert "    here: 0 events of 0 patients" in answer.output.splitlines()
    told = json.loads(spinney("study", "codes", folder / "study.yaml", "--site", folder / "site.yaml", "--json").stdout)
    first = told["codes"][0]
    assert (first["for"], first["code"], first["means"]) == ("weight", "@body", "2 codes, pinned")
    assert first["here"] == {
        "events": 32,
        "patients": 32,
        "codes": {WEIGHT: {"events": 32, "patients": 32}},
        "more_codes": 0,
    }
    assert not (folder / "home" / "cohorts").exists()


def test_a_site_with_another_file_is_told_both_digests_and_its_data_are_not_read(folder: Path) -> None:
    (folder / "body.csv").write_text("code\nhttp://loinc.org|8302-2\n")
    answer = spinney("study", "codes", folder / "study.yaml", "--site", folder / "nowhere.yaml")
    assert answer.exit_code == 2
    assert "body.csv here has the digest" in answer.stderr
    assert "the study was pinned with" in answer.stderr


def test_a_study_of_finished_tables_has_no_codes(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("name: s\nfeatures: [{name: a, kind: binary}]\nlabel: {name: b}\n")
    answer = spinney("study", "codes", tmp_path / "study.yaml")
    assert answer.exit_code == 2
    assert "reads finished tables and no codes" in answer.stderr
