"""Files as a source: NDJSON by its content, bundles, mixed files, and what is said when there is nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from spinney.connectors.sources import TABLE, Pulled, Wanted
from spinney.connectors.sources.files import Files, FilesSettings
from spinney.errors import SourceFailed
from tests.made_up import observation, patient, write

WANTED = [Wanted("Patient"), Wanted("Observation")]


def pull(path: Path, staging: Path) -> Pulled:
    staging.mkdir(exist_ok=True)
    return Files(FilesSettings(path=path)).pull(WANTED, staging, lambda *_: None)


@pytest.mark.parametrize(
    "name", ["ExportObservation.ndjson.gz", "ObservationVitalSignsED.ndjson", "Patient.ndjson", "1.jsonl", "x.json"]
)
def test_what_a_file_holds_is_told_by_its_content_and_not_by_its_name(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps(observation("2023-01-01", 1.0)) + "\n" for _ in range(3)).encode()
    (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith("gz") else lines)
    pulled = pull(tmp_path, tmp_path / "staging")
    assert pulled.files == {"Observation": (tmp_path / name,)}
    assert pulled.held[name] == {"Observation": 3}


@pytest.mark.parametrize("name", ["Condition", "OBSERVATION.NDJSON", "lab.txt", "part-00000", "lab.ndjson.1"])
def test_resources_in_a_file_that_is_called_anything_are_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("".join(json.dumps(observation("2023-01-01", 1.0)) + "\n" for _ in range(3)))
    pulled = pull(tmp_path, tmp_path / "staging")
    assert pulled.files == {"Observation": (tmp_path / name,)}
    assert pulled.held[name] == {"Observation": 3}


def test_every_file_of_the_folder_is_told_with_what_it_holds(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [patient(), observation("2023-01-01", 1.0)])
    (folder / "Group.ndjson").write_text('{"resourceType": "Group"}\n')
    (folder / "log.ndjson").write_text('{"level": "info"}\n{"level": "info"}\n')
    (folder / "empty.ndjson").touch()
    (folder / "labs.xlsx").write_bytes(b"PK")
    (folder / "older").mkdir()
    assert pull(folder, tmp_path / "staging").held == {
        "Group.ndjson": {"Group": 1},
        "Observation.ndjson": {"Observation": 1},
        "Patient.ndjson": {"Patient": 1},
        "empty.ndjson": {},
        "labs.xlsx": {},
        "log.ndjson": {"": 2},
        "older/": {},
    }


def test_a_folder_without_what_is_asked_for_says_what_it_has_instead(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "Observation.ndjson").write_text('{"resourceType": "Group"}\n' * 2)
    (folder / "Patient-Meier.csv").touch()
    with pytest.raises(
        SourceFailed, match=r"holds no .*, but 2 Group, 1 files whose content is unknown; look at"
    ) as no:
        pull(folder, tmp_path / "staging")
    assert "Meier" not in str(no.value)


def test_files_of_one_type_are_used_where_they_are(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [patient(), observation("2023-01-01", 1.0)])
    (folder / "Group.ndjson").write_text("{}")
    pulled = pull(folder, tmp_path / "staging")
    assert pulled.files == {"Patient": (folder / "Patient.ndjson",), "Observation": (folder / "Observation.ndjson",)}


def test_bundles_and_mixed_files_are_unpacked_by_type(tmp_path: Path) -> None:
    nameless = {key: value for key, value in patient().items() if key != "id"}
    bundle = {
        "resourceType": "Bundle",
        "entry": [{"resource": observation("2023-01-01", 1.0)}, {"fullUrl": "urn:uuid:bob", "resource": nameless}],
    }
    with gzip.open(tmp_path / "bundle.json.gz", "wt") as file:
        json.dump(bundle, file)
    lines = [json.dumps(one) for one in (patient("ann"), observation("2023-01-01", 1.0))]
    (tmp_path / "export.ndjson").write_text("\n".join([*lines, '{"resourceType": "Obs']))
    pulled = pull(tmp_path, tmp_path / "staging")
    people = [json.loads(line) for line in pulled.files["Patient"][0].read_text().splitlines()]
    assert sorted(one["id"] for one in people) == ["ann", "bob"]
    assert len(pulled.files["Observation"][0].read_text().splitlines()) == 2
    assert pulled.quarantined == {"not a FHIR resource": 1}


def test_what_is_missing_or_unreadable_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="nowhere is not there; mend the path"):
        pull(tmp_path / "nowhere", tmp_path / "staging")
    with pytest.raises(SourceFailed, match="holds no Observation or Patient"):
        pull(tmp_path, tmp_path / "staging")
    (tmp_path / "data.xlsx").touch()
    with pytest.raises(SourceFailed, match=r"data\.xlsx can't be read; it should end in \.ndjson"):
        pull(tmp_path / "data.xlsx", tmp_path / "staging")


def test_a_finished_table_is_handed_on_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "cohort.csv").touch()
    settings = FilesSettings(table=tmp_path / "cohort.csv")
    assert Files(settings).pull([Wanted(TABLE)], tmp_path, lambda *_: None).table == tmp_path / "cohort.csv"


def test_resources_are_of_no_use_to_a_study_without_a_definition(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="this site needs `table`"):
        Files(FilesSettings(path=tmp_path)).pull([Wanted(TABLE)], tmp_path, lambda *_: None)


def test_a_folder_and_a_table_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="either path"):
        FilesSettings(path=tmp_path, table=tmp_path)


def test_a_bundle_that_does_not_fit_into_memory_is_refused_however_small_it_is_packed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.json.gz", "wb") as file:
        file.write(b"[")
        for _ in range(65):
            file.write(b" " * 2**20)
    with pytest.raises(SourceFailed, match=r"bomb\.json\.gz is larger than 64 MiB unpacked.*write NDJSON"):
        pull(tmp_path / "bomb.json.gz", tmp_path / "staging")


def test_an_endless_line_of_a_mixed_file_is_one_broken_resource(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "export.ndjson.gz", "wb") as file:
        file.write(json.dumps(patient("ann")).encode() + b"\n")
        for _ in range(80):
            file.write(b"x" * 2**20)
        file.write(b"\n" + json.dumps(observation("2023-01-01", 1.0)).encode())
    pulled = pull(tmp_path / "export.ndjson.gz", tmp_path / "staging")
    assert set(pulled.files) == {"Patient", "Observation"}
    assert pulled.quarantined == {"not a FHIR resource": 1}
