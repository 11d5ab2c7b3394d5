"""What a night does besides the steps of its round, one call each."""

from __future__ import annotations

from prefect import task
from prefect.logging import get_run_logger

from spinney.connectors.mlflow import CHAMPION, Registry, Version, lineage_of
from spinney.errors import SpinneyError
from spinney.house.coordinator_night import Ended
from spinney.house.nights import HouseNights
from spinney.house.site_night import OpenedRound, RoundResult, SiteNights
from spinney.reports.facts import NightFacts, Standing
from spinney.reports.gather import round_facts
from spinney.reports.write import write_round_report, write_site_report
from spinney.tasks.artifacts import show_night, show_round
from spinney.tasks.guarded import guards_patients
from spinney.tasks.notices import warn
from spinney.tasks.retries import NO_TRACE, TRANSIENT


@task(task_run_name="look at the roster", **NO_TRACE)
@guards_patients
def look_at_roster(nights: SiteNights) -> None:
    """Accept what needs no person, and say what does."""
    for note in nights.look_at_roster():
        get_run_logger().warning(note)


@task(task_run_name="wait for the round to open", **NO_TRACE)
@guards_patients
def wait_for_opening(nights: SiteNights, number: int | None) -> OpenedRound:
    """The round that is open; fails when the study's patience is over."""
    return nights.await_opening(number)


@task(task_run_name="say that this site is not there tonight", **NO_TRACE)
@guards_patients
def decline_round(nights: SiteNights, reason: SpinneyError) -> None:
    """So that nobody waits for it; nothing that goes wrong here hides why."""
    try:
        told = nights.decline(reason)
    except SpinneyError as trouble:
        told, reason = "", trouble
    warn(f"the coordinator was told: {told}" if told else f"the coordinator was told nothing: {reason}")


@task(task_run_name="put the model of round {part.number} by", **NO_TRACE)
@guards_patients
def put_model_by(nights: SiteNights, part: RoundResult, *, waits: bool = False) -> None:
    """Keep it until it is registered, by this run or a later one. `waits`: a steward says whether it is used."""
    outcome, head = part.require(), nights.audit.verify().chain
    lineage = lineage_of(nights.study, nights.name, outcome.model, part.number, part.cohort.digest, head)
    promote = None if waits else part.takes_over
    Registry(nights.home, nights.site.registry).owe(nights.study, outcome, lineage, promote)


@task(task_run_name="register the model of round {number}", **TRANSIENT, **NO_TRACE)
@guards_patients
def register_model(nights: SiteNights, number: int) -> Version:
    """A version of what was put by: promoted, unless the champion is better beyond noise or a person looks first."""
    return Registry(nights.home, nights.site.registry).pay(nights.study.name, number)


def register_what_is_owed(nights: SiteNights) -> None:
    """Models of earlier rounds whose nights could not register them; that they still can't be costs nothing else."""
    for number in Registry(nights.home, nights.site.registry).owed(nights.study.name):
        try:
            version = register_model(nights, number)
        except SpinneyError as reason:
            warn(f"the model of round {number} is not registered yet: {reason}")
            continue
        result = nights.result(number)
        if result is not None:
            nights.keep(number, {**result, "version": version.number})
        warn(f"the model of round {number} is registered now, as version {version.number}")


def standing(nights: SiteNights, version: Version) -> Standing:
    """What the registry says after the night."""
    champion = Registry(nights.home, nights.site.registry).find(nights.study.name, CHAMPION)
    return Standing(str(version.number), str(champion.number) if champion else "")


def tidy_exchange(nights: HouseNights, *, everybodys: bool = False) -> None:
    """Whatever came of the night, nothing stays on the exchange for longer than the study says."""
    for note in nights.tidy_exchange(everybodys=everybodys):
        get_run_logger().warning(note)


@task(task_run_name="write the report", **NO_TRACE)
@guards_patients
def report_night(nights: SiteNights, facts: NightFacts) -> None:
    """The page for this house, and its key figures for the Prefect UI."""
    path = write_site_report(nights.home, facts)
    show_night(facts)
    get_run_logger().info("The report is in %s", path)


@task(task_run_name="write the report", **NO_TRACE)
@guards_patients
def report_round(ended: Ended) -> None:
    """The page for the coordinator, and its key figures for the Prefect UI."""
    facts = round_facts(ended.asking, ended.over)
    path = write_round_report(ended.asking.channel.home, facts)
    show_round(facts)
    get_run_logger().info("The report is in %s", path)
