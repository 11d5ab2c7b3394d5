"""What the columns of the Common Data Model mean, whatever database they come from."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from spinney.connectors.omop.records import RECORDS, birth, cdm_version, is_midnight, named, vocabulary, when
from spinney.study.definition import CohortDefinition


def test_a_time_is_preferred_to_its_day() -> None:
    assert when(date(2022, 3, 1), datetime(2022, 3, 1, 9)) == "2022-03-01T09:00:00"
    assert when("2022-03-01", "2022-03-01 09:00:00") == "2022-03-01 09:00:00"


def test_a_day_stays_a_day_in_every_database() -> None:
    assert when(date(2022, 3, 1), None) == "2022-03-01"
    assert when(datetime(2022, 3, 1), None) == "2022-03-01"
    assert when("2022-03-01", None) == "2022-03-01"
    assert when(None, None) is None


@pytest.mark.parametrize(
    "midnight",
    [
        datetime(2022, 3, 1),
        datetime(2022, 3, 1, tzinfo=UTC),
        "2022-03-01 00:00:00",
        "2022-03-01T00:00:00.000",
        "2022-03-01",
    ],
)
def test_midnight_is_a_time_that_nobody_knows_unless_the_site_says_otherwise(midnight: datetime | str) -> None:
    assert is_midnight(midnight)
    assert when(date(2022, 3, 1), midnight) == "2022-03-01"
    assert when(None, midnight) == "2022-03-01"
    assert str(when(date(2022, 3, 1), midnight, False)).startswith(str(midnight)[:10])


def test_any_other_time_is_no_midnight() -> None:
    assert not is_midnight(datetime(2022, 3, 1, 0, 0, 1))
    assert not is_midnight("2022-03-01 10:00:00")
    assert not is_midnight(None)


def test_a_birth_is_as_precise_as_it_is_known() -> None:
    assert birth(1950, 5, 3, None) == "1950-05-03"
    assert birth(1950, 5, None, None) == "1950-05"
    assert birth(1950, None, None, None) == "1950"
    assert birth(1950, None, None, datetime(1950, 7, 1)) == "1950-07-01"
    assert birth(None, None, None, None) is None


def test_a_code_is_named_as_studies_name_its_system() -> None:
    assert named("SNOMED", "44054006") == "http://snomed.info/sct|44054006"
    assert named("Nebraska Lexicon", "12") == "Nebraska Lexicon|12"
    assert named(None, None) is None
    assert vocabulary("http://loinc.org") == "LOINC"
    assert vocabulary("Nebraska Lexicon") == "Nebraska Lexicon"


@pytest.mark.parametrize(("words", "version"), [("v5.4", "5.4"), ("CDM v5.3.1", "5.3"), ("6.0", "6.0"), ("new", None)])
def test_the_version_is_read_from_what_people_write(words: str, version: str | None) -> None:
    assert cdm_version(words) == version


def test_every_kind_is_one_that_a_study_can_ask_for() -> None:
    schema = CohortDefinition.model_json_schema()
    assert set(RECORDS) <= set(schema["$defs"]["IndexEvent"]["properties"]["kind"]["enum"])
