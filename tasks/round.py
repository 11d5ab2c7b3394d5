"""What a night does besides the steps of its round, one call each."""

from __future__ import annotations

from prefect import task
from prefect.logging import get_run_logger

from connectors.registry import Registry, Version, lineage_of
from connectors.site_night import Found, Part, SiteNights
from spinney.errors import RoundVoid
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


@task(task_run_name="register the model of round {part.number}", **NO_TRACE)
@quietly
def register_model(nights: SiteNights, part: Part) -> Version:
    """The round's model as a candidate in this site's registry; the same version if it was registered before."""
    if part.outcome is None:
        raise RoundVoid(f"round {part.number} is void: {part.over.void}; this site keeps the model that it has")
    head = nights.audit.verify().chain
    model = part.outcome.model
    lineage = lineage_of(nights.study, nights.name, model, part.number, part.cohort.digest, head)
    return Registry(nights.home, nights.site.registry).register(nights.study, part.outcome, lineage)
