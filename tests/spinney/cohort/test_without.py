"""Files without those who are left out: in every way in which a record can name a patient."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spinney.cohort.objections import ObjectionJudge, Objections
from spinney.cohort.without import without_objectors
from spinney.connectors.opt_out.identifiers import Named
from spinney.connectors.sources import Pulled
from spinney.errors import SourceFailed


def judge(*names: str, system: str = "") -> ObjectionJudge:
    return ObjectionJudge(Objections(objects=frozenset(Named(system, "exact", name) for name in names)))


def without(folder: Path, pulled: Pulled, of: ObjectionJudge, patient: str | None = "patient") -> Pulled:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return without_objectors(pulled, of, patient, folder / "vault", work)


def lines_left(folder: Path, kind: str, lines: list[Any], of: ObjectionJudge) -> list[str]:
    path = folder / f"{kind}.ndjson"
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    path.write_text("".join(f"{one}\n" for one in texts))
    (left,) = without(folder, Pulled({kind: (path,)}), of).files[kind]
    return left.read_text().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        '{"resourceType":"Observation","id":"1","subject":{"reference":"Patient/ann"}}',
        '{"resourceType":"Observation","id":"1","subject":{"reference":"https://a.example/Patient/ann/_history/2"}}',
        '{"resourceType":"Observation","id":"1","subject":{"reference":"urn:uuid:ann"}}',
        '{"resourceType":"Coverage","id":"1","beneficiary":{"reference":"Patient/ann"}}',
        '{"resourceType":"Observation","id":"1","subject":{"reference":"Patient\\/ann"}}',
        '{"resourceType":"Observation","id":"1","subject":{"reference":"\\u0050atient/ann"}}',
        '{"resourceType":"Observation","id":"1","subject":{"reference":"Patient/\\u0061nn"}}',
        '{"resourceType":"Observation","id":"1","subject" : { "reference" : "ann" } }',
        '{"resourceType":"AllergyIntolerance","id":"1","patient":{"reference":"Patient/ann"}}',
        '{"resourceType":"Patient","id":"ann"}',
        '{"resourceType":"Observation","subject":{"reference":"Patient/ann"},"valueQ',
    ],
)
def test_a_resource_is_left_out_however_it_names_its_patient(tmp_path: Path, line: str) -> None:
    other = '{"resourceType":"Observation","id":"2","subject":{"reference":"Patient/bob"}}'
    assert lines_left(tmp_path, "Observation", [line, other], judge("ann")) == [other]


def test_what_only_mentions_somebody_stays_with_its_own_patient(tmp_path: Path) -> None:
    child = {"resourceType": "Observation", "subject": {"reference": "Patient/bob"}}
    child["performer"] = [{"reference": "Patient/ann"}]  # type: ignore[assignment]
    assert len(lines_left(tmp_path, "Observation", [child], judge("ann"))) == 1


def test_a_file_of_the_sources_own_is_left_as_it_is(tmp_path: Path) -> None:
    line = {"resourceType": "Patient", "id": "ann"}
    assert lines_left(tmp_path, "Patient", [line], judge("ann")) == []
    assert (tmp_path / "Patient.ndjson").read_text() == f"{json.dumps(line)}\n"


def test_a_file_without_anybody_who_objects_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "Patient.ndjson"
    path.write_text('{"resourceType":"Patient","id":"bob"}\n')
    assert without(tmp_path, Pulled({"Patient": (path,)}), judge("ann")).files["Patient"] == (path,)


def test_what_lies_in_the_vault_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "vault" / "Patient.ndjson"
    path.parent.mkdir()
    path.write_text('{"resourceType":"Patient","id":"ann"}\n{"resourceType":"Patient","id":"bob"}\n')
    assert without(tmp_path, Pulled({"Patient": (path,)}), judge("ann")).files["Patient"] == (path,)
    assert "ann" not in path.read_text()


def test_somebody_may_be_listed_by_another_identifier(tmp_path: Path) -> None:
    people = tmp_path / "Patient.ndjson"
    identifier = [{"system": "urn:mrn", "value": "7"}]
    people.write_text(json.dumps({"resourceType": "Patient", "id": "ann", "identifier": identifier}) + "\n")
    seen = tmp_path / "Observation.ndjson"
    about: list[Any] = [{"reference": "Patient/ann"}, {"identifier": identifier[0]}]
    seen.write_text("".join(f"{json.dumps({'resourceType': 'Observation', 'subject': one})}\n" for one in about))
    of = judge("7", system="urn:mrn")
    left = without(tmp_path, Pulled({"Patient": (people,), "Observation": (seen,)}), of)
    assert [path.read_text() for paths in left.files.values() for path in paths] == ["", ""]
    assert (of.counts.objecting, of.counts.unmatched) == (1, 0)


def test_what_is_told_of_a_file_does_not_count_them(tmp_path: Path) -> None:
    lines = [{"resourceType": "Patient", "id": who} for who in ("ann", "bob")]
    path = tmp_path / "Patient.ndjson"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    held = {"Patient.ndjson": {"Patient": 2}, "all.json": {"Patient": 7}}
    assert without(tmp_path, Pulled({"Patient": (path,)}, held=held), judge("ann")).held == {
        "Patient.ndjson": {"Patient": 1},
        "all.json": {},
    }
    assert without(tmp_path, Pulled({"Patient": (path,)}, held=held), judge("zoe")).held == held


def test_a_list_of_another_system_needs_patients_of_fhir(tmp_path: Path) -> None:
    pq.write_table(pa.table({"patient": ["1"]}), tmp_path / "Patient.parquet")
    with pytest.raises(SourceFailed, match="needs a source with FHIR Patient resources"):
        without(tmp_path, Pulled({"Patient": (tmp_path / "Patient.parquet",)}), judge("7", system="urn:mrn"))


@pytest.mark.parametrize("column", [["7", "8", None], [7, 8, None], [7.0, 8.0, None]])
def test_a_number_is_called_what_people_call_it(tmp_path: Path, column: list[Any]) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"patient": pa.array(column), "x": [1, 2, 3]}), path)
    left = without(tmp_path, Pulled(table=path), judge("7")).table
    assert left is not None
    assert pq.read_table(left)["x"].to_pylist() == [2, 3]


def test_a_table_of_text_keeps_every_other_line_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(
        b'\xef\xbb\xbfx,patient\r\n1,"ann"\r\n"two\r\nlines",bob\r\nbroken\r\nann\r\n3,"a""nn"\r\n\xff,bob\r\n'
    )
    left = without(tmp_path, Pulled(table=path), judge("ann")).table
    assert left is not None
    assert left.read_bytes() == b'\xef\xbb\xbfx,patient\r\n"two\r\nlines",bob\r\nbroken\r\n3,"a""nn"\r\n\xff,bob\r\n'


def test_a_table_without_patients_can_leave_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("x\n1\n")
    with pytest.raises(SourceFailed, match="name patient_column"):
        without(tmp_path, Pulled(table=tmp_path / "table.csv"), judge("ann"), None)
