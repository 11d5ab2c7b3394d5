"""What a pull says of itself: counts, and nothing of the source's own words where a log would keep them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

from spinney.cohort.pull_report import PullReport


def test_as_plain_data_it_is_json_and_quotes_nothing() -> None:
    report = PullReport(
        read=Counter(Patient=3),
        quarantined=Counter({("Observation", "no time"): 2}),
        watermark=datetime(2024, 1, 2, tzinfo=UTC),
        notes=["one note"],
        quoting=["local-Meier: 3 values in mmol"],
    )
    plain = json.loads(json.dumps(report.plain()))
    assert plain["quarantined"] == {"Observation: no time": 2}
    assert plain["watermark"] == "2024-01-02T00:00:00+00:00"
    assert "Meier" not in json.dumps(plain)


def test_a_log_hears_that_there_are_more_notes_and_where() -> None:
    report = PullReport(notes=["one note"], quoting=["a", "b"])
    assert report.for_logs == [
        "one note",
        "2 notes are about codes and units of the source: spinney site check shows them",
    ]
    assert PullReport(notes=["one note"]).for_logs == ["one note"]


def test_the_share_in_quarantine_is_of_what_was_read() -> None:
    report = PullReport(read=Counter(Patient=30, Observation=70), quarantined=Counter({("Observation", "no time"): 7}))
    assert report.quarantined_share == 0.07
    assert PullReport().quarantined_share == 0
