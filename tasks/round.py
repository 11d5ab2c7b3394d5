"""What a night does besides the steps of its round, one call each."""

from __future__ import annotations

from prefect import task
from prefect.logging import get_run_logger

from connectors.site_night import Found, SiteNights
from tasks.quiet import quietly
from tasks.retries import NO_TRACE


@task(task_run_name="look at the roster", **NO_TRACE)
@quietly
def look_at_roster(nights: SiteNights) -> None:
    """Accept what needs no person, and say what does."""
    for note in nights.look_at_roster():
        get_run_logger().warning(note)


@task(task_run_name="wait for the round to open", **NO_TRACE)
@quietly
def wait_for_opening(nights: SiteNights, number: int | None) -> Found:
    """The round that is open; fails when the study's patience is over."""
    return nights.await_opening(number)
