"""The connection that works through a pull: within its limits, and with one meaning for every time."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pytest

from spinney.connectors.duck import open_bench
from spinney.errors import SourceFailed


def test_an_unknown_time_zone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="Mars/Olympus is no time zone"):
        open_bench(tmp_path, "Mars/Olympus")


@pytest.mark.parametrize("day", ["2024-02-05", "2024-2-5", "2024-02-5", "2024/02/05"])
def test_a_day_is_known_at_its_end_however_it_is_written(tmp_path: Path, day: str) -> None:
    with open_bench(tmp_path, "Europe/Berlin") as bench:
        asked = "SELECT moment($1), known_from($1), calendar_day($1), is_day($1)"
        (told,) = bench.execute(asked, [day]).fetchall()
    end = datetime(2024, 2, 5, 22, 59, 59, 999999)
    assert told == (datetime(2024, 2, 4, 23), end, date(2024, 2, 5), True)


@pytest.mark.parametrize("word", ["24-02-05", "05.02.2024", "20240205", "1-1-1", "epoch", "infinity", "", "2024-02-30"])
def test_what_has_no_year_of_four_digits_at_its_beginning_is_no_date(tmp_path: Path, word: str) -> None:
    with open_bench(tmp_path) as bench:
        asked = "SELECT moment($1), known_from($1), calendar_day($1), broken($1)"
        assert bench.execute(asked, [word]).fetchall() == [(None, None, None, True)]


@pytest.mark.parametrize(
    ("day", "age"), [("2023-02-28", 46), ("2023-03-01", 47), ("2024-02-28", 47), ("2024-02-29", 48), ("1976-02-28", -1)]
)
def test_who_was_born_on_a_leap_day_is_older_when_that_day_is_over(tmp_path: Path, day: str, age: int) -> None:
    with open_bench(tmp_path) as bench:
        assert bench.execute("SELECT age_on(DATE '1976-02-29', CAST(? AS DATE))", [day]).fetchall() == [(age,)]
