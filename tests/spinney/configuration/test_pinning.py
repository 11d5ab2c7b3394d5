"""What code sets mean is written into the study, beside everything that stands there, and other files are noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinney.configuration.pinning import pin
from spinney.configuration.study_file import read_study, write_study
from spinney.errors import StudyInvalid

SCT = "http://snomed.info/sct"
STUDY = """\
# our study
name: s
features:
  - {name: hf, kind: binary, source: {kind: Condition, codes: ["@hf"], statistic: exists}}  # heart
label: {name: dead, source: {outcome: death, horizon: 8h}}
cohort: {index: {kind: Encounter}}
code_sets:
  hf: {files: [sets/hf.json]}
  icd: {descendants_of: ["http://hl7.org/fhir/sid/icd-10|I50"]}
"""


def a_study(folder: Path, text: str = STUDY, *words: str) -> Path:
    (folder / "sets").mkdir(exist_ok=True)
    concepts = [{"code": word} for word in words or ("84114007",)]
    compose = {"include": [{"system": SCT, "concept": concepts}]}
    (folder / "sets" / "hf.json").write_text(json.dumps({"resourceType": "ValueSet", "compose": compose}))
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def test_a_study_with_sets_is_no_study_before_they_are_pinned(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match=r"code set hf is not pinned, .*; run spinney study pin"):
        read_study(a_study(tmp_path))


def test_pinning_adds_to_the_file_and_changes_nothing_else(tmp_path: Path) -> None:
    path = a_study(tmp_path)
    path.chmod(0o644)
    study, changed = pin(path)
    assert changed == ("hf", "icd")
    assert path.read_text().startswith(STUDY)
    assert path.stat().st_mode & 0o777 == 0o644
    assert read_study(path) == study
    assert study.pinned["hf"].codes == {SCT: ("84114007",)}
    assert study.pinned["icd"].codes == {"http://hl7.org/fhir/sid/icd-10": ("I50*",)}


def test_pinning_again_writes_nothing(tmp_path: Path) -> None:
    path = a_study(tmp_path)
    pin(path)
    before = path.stat().st_mtime_ns, path.read_bytes()
    assert pin(path)[1] == ()
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_what_stands_behind_the_pinned_sets_stays(tmp_path: Path) -> None:
    path = a_study(tmp_path)
    pin(path)
    path.write_text(path.read_text() + "\n# how many\nquorum: 3\n")
    a_study(tmp_path, path.read_text(), "1", "2")
    study, changed = pin(path)
    assert (changed, study.quorum, study.pinned["hf"].codes) == (("hf",), 3, {SCT: ("1", "2")})
    assert path.read_text().startswith(STUDY)
    assert path.read_text().endswith("\n# how many\nquorum: 3\n")


def test_a_set_that_is_gone_is_taken_out(tmp_path: Path) -> None:
    path = a_study(tmp_path)
    pin(path)
    kept = "\n".join(line for line in path.read_text().splitlines() if "icd: {" not in line)
    path.write_text(kept + "\n")
    study, changed = pin(path)
    assert (changed, list(study.pinned)) == (("icd",), ["hf"])


def test_another_file_beside_the_study_is_refused_with_both_digests_and_what_to_do(tmp_path: Path) -> None:
    path = a_study(tmp_path)
    signed = pin(path)[0].pinned["hf"].files["sets/hf.json"]
    a_study(tmp_path, path.read_text(), "1")
    with pytest.raises(StudyInvalid) as refused:
        read_study(path)
    words = str(refused.value)
    assert signed in words
    assert "sets/hf.json here has the digest" in words
    assert "takes its own file away, or gets the coordinator's" in words


def test_a_site_without_the_files_has_the_same_study(tmp_path: Path) -> None:
    path = a_study(tmp_path)
    study, _ = pin(path)
    (tmp_path / "sets" / "hf.json").unlink()
    assert read_study(path).digest == study.digest


def test_mistakes_in_sets_have_their_lines_and_nothing_is_written(tmp_path: Path) -> None:
    path = a_study(
        tmp_path, STUDY + "  toe: {files: [toe.csv]}\n  sct: {descendants_of: ['http://snomed.info/sct|1']}\n"
    )
    before = path.read_text()
    with pytest.raises(StudyInvalid) as refused:
        pin(path)
    first, second = refused.value.mistakes
    assert first.startswith(f"{path}:10 code set toe: ")
    assert second.startswith(f"{path}:11 code set sct: no file says what is below")
    assert path.read_text() == before


def test_a_study_in_another_form_of_yaml_is_left_alone(tmp_path: Path) -> None:
    path = a_study(tmp_path, json.dumps({"name": "s", "code_sets": {"hf": {"files": ["sets/hf.json"]}}}))
    before = path.read_text()
    with pytest.raises(StudyInvalid, match="can't be written into a file of this form"):
        pin(path)
    assert path.read_text() == before


@pytest.mark.parametrize("file", ["/etc/passwd", "../x.json", "a//b", "a\\b", "c:x", "", "./x"])
def test_a_set_has_no_files_elsewhere(tmp_path: Path, file: str) -> None:
    path = a_study(tmp_path, STUDY.replace("sets/hf.json", json.dumps(file)))
    with pytest.raises(StudyInvalid, match=r"is no file next to study.yaml"):
        pin(path)


def test_a_study_that_is_written_anew_keeps_its_pinned_sets(tmp_path: Path) -> None:
    study, _ = pin(a_study(tmp_path, STUDY, "84114007", "007", "a: b", "- x", "# y", "'q", "true"))
    write_study(study, tmp_path / "again.yaml")
    assert read_study(tmp_path / "again.yaml") == study
