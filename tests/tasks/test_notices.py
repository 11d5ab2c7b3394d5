"""What people should hear while a run waits is in that run's log; outside of one, nobody is bothered."""

from __future__ import annotations

import logging

import pytest
from prefect import flow

from spinney.tasks.notices import warn


def test_outside_of_a_run_it_is_silent(caplog: pytest.LogCaptureFixture):
    warn("the roster has changed")
    assert caplog.records == []


@pytest.mark.usefixtures("prefect")
def test_in_a_run_it_is_a_warning_of_that_run(caplog: pytest.LogCaptureFixture):
    @flow(name="waiting")
    def waiting() -> None:
        warn("the roster has changed")

    with caplog.at_level(logging.WARNING, "prefect.flow_runs"):
        waiting()
    (record,) = (one for one in caplog.records if one.getMessage() == "the roster has changed")
    assert (record.levelname, record.flow_name) == ("WARNING", "waiting")
