"""Dates that are shifted: what the site says counts as now, in every kind of source, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from spinney.cohort.as_of import AsOf, clock, moment_of
from spinney.cohort.code_counts import count_codes
from spinney.cohort.vault import Vault
from spinney.errors import SourceFailed
from tests.made_up import (
    NOW,
    WEIGHED,
    WEIGHT,
    encounter,
    frame,
    observation,
    plain_study,
    pull_at,
    pull_open_at,
    pulled,
    site,
    study,
    write,
)

CYCLE = 400  # the calendar is the same again, to the weekday
TABLE = "patient,index_time,weight,height,outcome\nann,2423-01-10,70,1.7,1\nben,2423-03-10,80,1.8,0\n"


def shifted(resources: list[Any]) -> list[Any]:
    """The same, long after everybody who reads this."""
    text = json.dumps(resources)
    for year in ("1960", "2022", "2023"):
        text = text.replace(f'"{year}-', f'"{int(year) + CYCLE}-')
    return list(json.loads(text))


@pytest.mark.parametrize(
    ("written", "zone", "moment"),
    [
        ("2131-05-01", "UTC", datetime(2131, 5, 1, 23, 59, 59, 999999, tzinfo=UTC)),
        ("2023-03-26", "Europe/Berlin", datetime(2023, 3, 26, 21, 59, 59, 999999, tzinfo=UTC)),
        ("2131-05-01T12:00", "Asia/Kolkata", datetime(2131, 5, 1, 6, 30, tzinfo=UTC)),
        ("2131-05-01 12:00", "UTC", datetime(2131, 5, 1, 12, tzinfo=UTC)),
        ("2131-05-01T12:00+02:00", "Asia/Kolkata", datetime(2131, 5, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_day_counts_to_its_end_and_an_instant_has_the_zone_of_the_site(
    written: str, zone: str, moment: datetime
) -> None:
    assert moment_of(written, zone) == moment


@pytest.mark.parametrize("written", ["2131", "2131-05", "tomorrow", "", "01.05.2131", "2131-02-30", "0001-01-01"])
def test_what_is_neither_a_day_nor_an_instant_says_what_to_write(written: str) -> None:
    with pytest.raises(ValidationError, match=r"write 2131-05-01|the year lies between"):
        TypeAdapter(AsOf).validate_python(written)


def test_a_time_zone_that_is_none_is_told_in_one_line() -> None:
    with pytest.raises(SourceFailed, match="Atlantis is no time zone; use a name such as"):
        moment_of("2131-05-01", "Atlantis")


def test_without_it_the_clock_counts() -> None:
    before = datetime.now(UTC)
    assert before <= clock(None, "UTC") <= datetime.now(UTC)
    assert clock(None, "UTC", NOW) == NOW


def test_shifted_records_give_the_table_of_those_that_are_not(tmp_path: Path) -> None:
    plain = frame(tmp_path / "plain", study(), WEIGHED)
    later = frame(tmp_path / "later", study(), shifted(WEIGHED), as_of="2424-01-01T00:00Z")
    assert list(later["index_time"]) == [time.replace(year=time.year + CYCLE) for time in plain["index_time"]]
    rest = [frame.drop(columns=["index_time", "patient"]) for frame in (plain, later)]
    pd.testing.assert_frame_equal(*rest)


def test_a_label_is_ripe_by_what_counts_as_now(tmp_path: Path) -> None:
    more = [*shifted(WEIGHED), encounter("2423-11-20T10:00:00Z", "2423-11-25T10:00:00Z")]
    early = pulled(tmp_path / "early", study(), more, as_of="2423-12-10")
    assert (early.report.rows, early.report.unripe) == (1, 1)
    late = pulled(tmp_path / "late", study(), [*more, observation("2423-12-30", 1.0)], as_of="2423-12-31")
    assert (late.report.rows, late.report.unripe) == (2, 0)


def test_what_lies_after_it_is_in_the_future_and_counted(tmp_path: Path) -> None:
    report = pulled(tmp_path, study(), [*WEIGHED, observation("2023-12-10", 1.0)], as_of="2023-12-09").report
    assert report.unused == {("Observation", "in the future"): 1}
    of_the_day = pulled(tmp_path / "day", study(), [*WEIGHED, observation("2023-12-10", 1.0)], as_of="2023-12-10")
    assert of_the_day.report.unused == {}


def test_notes_and_report_say_what_counts_as_now(tmp_path: Path) -> None:
    report = pulled(tmp_path, study(), shifted(WEIGHED), as_of="2424-01-01").report
    assert "the source's dates are shifted: 2424-01-01 counts as now" in report.for_logs
    assert report.plain()["as_of"] == "2424-01-01"
    assert pulled(tmp_path / "plain", study(), WEIGHED).report.as_of is None


def test_rows_to_be_scored_go_by_it_too(tmp_path: Path) -> None:
    write(tmp_path / "fhir", [*shifted(WEIGHED), encounter("2423-11-20T10:00:00Z", "2423-11-25T10:00:00Z")])
    opened = pull_open_at(study(), site(tmp_path, as_of="2423-12-10"), now=NOW)
    assert opened.unripe.rows == 1


def test_codes_are_counted_up_to_it(tmp_path: Path) -> None:
    write(
        tmp_path / "fhir",
        [*shifted(WEIGHED), observation("2423-01-05", 1.0, who="ben"), observation("2423-12-10", 1.0)],
    )
    few = study().with_settings(privacy={"smallest_leaf": 2})
    for day, events in (("2423-12-09", 2), ("2423-12-10", 3)):
        found = count_codes(few, site(tmp_path, as_of=day).pull_plan("stays"))
        assert found["Observation", WEIGHT].total.events == events


def test_queries_are_bound_by_it(tmp_path: Path, sqlite: Callable[..., str]) -> None:
    url = sqlite(
        "CREATE TABLE stays (who TEXT, began TEXT, ended TEXT)",
        "INSERT INTO stays VALUES ('ann', '2423-01-01 10:00', '2423-01-10 10:00')",
        "INSERT INTO stays VALUES ('zoe', '2423-12-01 10:00', '2423-12-02 10:00')",
    )
    query = "SELECT who AS patient, began AS time, ended AS until, 'finished' AS status, 'IMP' AS class FROM stays "
    source = {"kind": "sql", "url": url, "events": {"Encounter": query + "WHERE began <= :until"}}
    for as_of, read in (("2423-02-01", 1), ("2423-12-24", 2)):
        report = pull_open_at(study(), site(tmp_path, source=source, as_of=as_of)).report
        assert report.read["Encounter"] == read


def test_rows_of_a_finished_table_after_it_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "cohort.csv").write_text(TABLE)
    source = {"kind": "files", "table": tmp_path / "cohort.csv"}
    result = pull_at(plain_study(), site(tmp_path, source=source, as_of="2423-02-01"))
    assert (result.report.rows, result.report.unused) == (1, {("table", "in the future"): 1})
    assert Vault(tmp_path / "home").read(result.cohort)["weight"].to_pylist() == [70.0]
    assert pull_at(plain_study(), site(tmp_path, source=source)).report.rows == 2
