"""spinney study: what people see, and what scripts rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.configuration.study_file import read_study
from spinney.flows.cli import main

STUDY = "name: heart\nfeatures:\n  - {name: smoker, kind: binary}\nlabel: {name: died}\n"


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def study_file(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    return file


@pytest.fixture
def demo_folder(tmp_path):
    assert spinney("demo", "data", "--out", tmp_path / "demo", "--sites", 3, "--patients", 300).exit_code == 0
    return tmp_path / "demo"


@pytest.mark.parametrize("words", [[], ["study"], ["study", "infer"], ["study", "check"], ["demo"], ["demo", "data"]])
def test_help_is_there_before_anything_heavy_is_imported(words):
    heavy = {"numpy", "pandas", "pydantic", "prefect", "sklearn", "yaml", "rich", "spinney.connectors"}
    code = (
        "import sys\nfrom spinney.flows.cli import main\n"
        f"main({[*words, '--help']!r}, standalone_mode=False)\nprint('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("Usage:")
    assert answer.stdout.endswith("HEAVY []\n")


def test_a_study_is_inferred_from_a_folder_and_can_be_read_again(demo_folder, tmp_path):
    answer = spinney("study", "infer", demo_folder, "--label", "readmitted", "-o", tmp_path / "study.yaml")
    assert answer.exit_code == 0
    assert "26 features, sites alder, ash, beech; read it" in answer.output
    study = read_study(tmp_path / "study.yaml")
    assert study.name == "demo"
    assert study.label.name == "readmitted"


def test_what_inference_left_out_is_said_and_written(demo_folder, tmp_path):
    answer = spinney("study", "infer", demo_folder, "--label", "readmitted", "-o", tmp_path / "study.yaml")
    note = "nt_probnp is absent at beech; trees take it as missing there."
    assert note in answer.output
    assert f"# {note}" in (tmp_path / "study.yaml").read_text()


def test_inference_takes_the_name_that_it_is_given(demo_folder, tmp_path):
    spinney("study", "infer", demo_folder, "--label", "readmitted", "--name", "hf30", "-o", tmp_path / "study.yaml")
    assert read_study(tmp_path / "study.yaml").name == "hf30"


def test_a_name_that_no_study_can_have_is_one_plain_line(demo_folder, tmp_path):
    answer = spinney("study", "infer", demo_folder, "--label", "readmitted", "--name", "a b", "-o", tmp_path / "x.yaml")
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output


def test_a_good_study_is_said_to_be_valid_with_its_digest(study_file):
    answer = spinney("study", "check", study_file)
    assert answer.exit_code == 0
    assert f"digest {read_study(study_file).digest}" in answer.output


def test_mistakes_go_to_stderr_as_plain_lines_with_exit_code_2(study_file):
    study_file.write_text(STUDY.replace("binary", "binry") + "quorum: 1\n")
    answer = spinney("study", "check", study_file)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert [line.partition(" ")[0] for line in answer.stderr.splitlines()] == [f"{study_file}:3", f"{study_file}:5"]


@pytest.mark.parametrize(("text", "valid", "code"), [(STUDY, True, 0), ("name: x", False, 2)])
def test_scripts_get_json(study_file, text, valid, code):
    study_file.write_text(text)
    answer = spinney("study", "check", study_file, "--json")
    assert answer.exit_code == code
    found = json.loads(answer.stdout)
    assert found["valid"] is valid
    assert bool(found["mistakes"]) is not valid


def test_the_schema_has_every_section_of_a_study():
    schema = json.loads(spinney("study", "schema").stdout)
    assert {"name", "features", "label", "forest", "algorithm", "privacy"} <= set(schema["properties"])


def test_a_study_that_lets_somebody_see_counts_says_so_when_it_is_checked(tmp_path):
    study = "name: s\nfeatures: [{name: a, kind: binary}]\nlabel: {name: y}\nprivacy: {secure_sum: ring}\n"
    (tmp_path / "study.yaml").write_text(study)
    result = CliRunner().invoke(main, ["study", "check", str(tmp_path / "study.yaml")])
    assert result.exit_code == 0
    assert "the owner of a tree learns its summed counts" in result.stderr


def test_a_fair4health_feature_set_becomes_a_study_and_the_rest_is_listed(tmp_path: Path) -> None:
    variables = [
        {"name": "Gender", "fhir_query": "/Patient", "fhir_path": "value:Patient.gender"},
        {"name": "Language", "fhir_query": "/Patient", "fhir_path": "value:Patient.name.text"},
        {
            "name": "Readmitted",
            "fhir_query": "/Encounter",
            "fhir_path": "value:readmission:30",
            "variable_type": "dependent",
        },
    ]
    (tmp_path / "set.json").write_text(json.dumps({"name": "Use case 2", "variables": variables}, indent=1))
    command = ("study", "import-fair4health", tmp_path / "set.json", "-o", tmp_path / "study.yaml")
    answer = spinney(*command)
    assert answer.exit_code == 0
    assert "left out: line 10: language: Patient.name.text: of a patient, a study knows age and sex\n" in answer.stdout
    assert answer.stdout.endswith("study.yaml: 1 features, 1 left out; read it and correct it.\n")
    assert "# left out: line 10: language" in (tmp_path / "study.yaml").read_text()
    assert spinney("study", "check", tmp_path / "study.yaml").exit_code == 0
    assert "is there already" in spinney(*command).stderr
    assert spinney(*command, "--force").exit_code == 0


def test_a_fair4health_document_without_an_outcome_is_refused_in_a_line(tmp_path: Path) -> None:
    variables = [{"name": "Gender", "fhir_query": "/Patient", "fhir_path": "value:Patient.gender"}]
    (tmp_path / "set.json").write_text(json.dumps({"name": "Use case 2", "variables": variables}))
    answer = spinney("study", "import-fair4health", tmp_path / "set.json", "-o", tmp_path / "study.yaml")
    assert answer.exit_code == 2
    assert "line 1: no dependent variable" in answer.stderr
    assert not (tmp_path / "study.yaml").exists()
