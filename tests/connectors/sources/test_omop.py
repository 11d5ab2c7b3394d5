"""The OMOP source on tables of the model, on a real PostgreSQL and on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spinney.connectors import database as database_reader
from spinney.connectors.sources import Surroundings, Wanted
from spinney.connectors.sources.omop import OmopSettings
from spinney.errors import SourceFailed
from tests.made_up_omop import SNOMED, diagnosis, model, pull

Database = Callable[..., str]


@pytest.fixture(params=["postgres", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    make: Database = request.getfixturevalue(request.param)
    return make


@pytest.mark.parametrize(
    "code", [f"{SNOMED}|44054006", "omop|201826", "https://fhir-terminology.ohdsi.org|201826", "SNOMED|44054006"]
)
def test_a_concept_is_found_by_its_number_and_by_its_code(sqlite: Database, tmp_path: Path, code: str) -> None:
    rows = pull(sqlite(*model(diagnosis())), tmp_path, Wanted("Condition", (code, "omop|3004501")))["Condition"]
    assert [(row["code"], row["event"]) for row in rows] == [(code, "condition_occurrence/1")]


def test_a_row_with_two_wanted_codes_is_one_event(database: Database, tmp_path: Path) -> None:
    codes = (f"{SNOMED}|44054006", "http://hl7.org/fhir/sid/icd-10-cm|E11.9")
    url = database(*model(diagnosis(condition_source_concept_id=45533022, condition_source_value="E11.9")))
    rows = pull(url, tmp_path, Wanted("Condition", codes))["Condition"]
    assert {row["code"] for row in rows} == set(codes)
    assert len({row["event"] for row in rows}) == 1


def test_a_word_that_has_no_concept_can_be_asked_for(sqlite: Database, tmp_path: Path) -> None:
    url = sqlite(*model(diagnosis(condition_concept_id=0, condition_source_value="DM2"), diagnosis(2)))
    rows = pull(url, tmp_path, Wanted("Condition", ("omop-source|DM2",)))["Condition"]
    assert [row["code"] for row in rows] == ["omop-source|DM2"]


def test_without_codes_everything_comes_with_all_its_names(sqlite: Database, tmp_path: Path) -> None:
    rows = pull(sqlite(*model(diagnosis(), diagnosis(2))), tmp_path, Wanted("Condition"))["Condition"]
    assert {row["code"] for row in rows} == {f"{SNOMED}|44054006", "omop|201826"}
    assert {row["event"] for row in rows} == {"condition_occurrence/1", "condition_occurrence/2"}


def test_times_at_midnight_are_counted_and_said(sqlite: Database, tmp_path: Path) -> None:
    url = sqlite(*model(diagnosis(1), diagnosis(2, condition_start_datetime="2022-03-01 00:00:00")))
    source = OmopSettings(url=url).open(Surroundings())
    pulled = source.pull([Wanted("Condition"), Wanted("DiagnosticReport")], tmp_path, lambda *_: None)
    ((words, rows),) = pulled.by_patient.items()
    assert words.startswith("condition_occurrence: {count} begin at midnight")
    assert rows == {"1": 1}
    assert pulled.notes == ("DiagnosticReport: OMOP has no table for it",)


def test_only_what_lies_in_the_window_is_read(database: Database, tmp_path: Path) -> None:
    days = ["2021-01-01", "2021-12-31", "2022-03-01", "2023-01-01", "2024-01-01"]
    url = database(*model(*(diagnosis(at, condition_start_date=day) for at, day in enumerate(days))))
    window = datetime(2022, 1, 1, tzinfo=UTC), datetime(2023, 1, 1, tzinfo=UTC)
    rows = pull(url, tmp_path, Wanted("Condition", ("omop|201826",), *window))["Condition"]
    assert sorted(row["time"] for row in rows) == days[1:4]  # a day more, for time zones


def test_vocabularies_may_have_a_schema_of_their_own(postgres: Database, tmp_path: Path) -> None:
    statements = model(diagnosis())
    moved = ["CREATE SCHEMA words", "ALTER TABLE concept SET SCHEMA words"]
    rows = pull(
        postgres(*statements, *moved), tmp_path, Wanted("Condition", ("omop|201826",)), vocabulary_schema="words"
    )
    assert len(rows["Condition"]) == 1


def test_many_rows_come_in_batches_and_tell_how_far_they_are(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_reader, "BATCH", 10)
    url = database(*model(*(diagnosis(number) for number in range(25))))
    seen: list[int] = []
    source = OmopSettings(url=url).open(Surroundings())
    source.pull([Wanted("Condition", ("omop|201826",))], tmp_path, lambda _kind, read, _total: seen.append(read))
    assert seen == [10, 20, 25]


def test_a_look_says_version_and_database(sqlite: Database) -> None:
    assert OmopSettings(url=sqlite(*model(version="5.3"))).reach(Surroundings()) == "OMOP CDM 5.3 on sqlite answers"


def test_a_table_that_is_none_of_omop_is_named(sqlite: Database, tmp_path: Path) -> None:
    url = sqlite(*model(), "DROP TABLE condition_occurrence", "CREATE TABLE condition_occurrence (person_id INTEGER)")
    with pytest.raises(SourceFailed, match="condition_occurrence has no column condition_start_date"):
        pull(url, tmp_path, Wanted("Condition"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"eras": ["Procedure"]}, "there is none of Procedure"),
        ({"drug_types": {"Observation": [1]}}, "Observation is not in drug_exposure"),
        ({"eras": ["MedicationRequest"], "drug_types": {"MedicationRequest": [1]}}, "rows of drug_era have no type"),
        ({"url": "postgresql://reader:pass@db/omop"}, "url must hold no password"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        OmopSettings(**{"url": "sqlite:///omop.db", **wrong})
