"""What a night does besides the steps of its round, one call each."""

from __future__ import annotations

from prefect import task
from prefect.logging import get_run_logger

from spinney.connectors.mlflow import CHAMPION, Registry, Version, lineage_of
from spinney.house.coordinator_night import Ended
from spinney.house.nights import HouseNights
from spinney.house.site_night import OpenedRound, RoundResult, SiteNights
from spinney.reports.facts import NightFacts, Standing
from spinney.reports.gather import round_facts
from spinney.reports.write import write_round_report, write_site_report
from spinney.tasks.artifacts import show_night, show_round
from spinney.tasks.guarded import guards_patients
from spinney.tasks.retries import NO_TRACE


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


@task(task_run_name="register the model of round {part.number}", **NO_TRACE)
@guards_patients
def register_model(nights: SiteNights, part: RoundResult) -> Version:
    """The round's model as a candidate in this site's registry; the same version if it was registered before."""
    outcome, head = part.require(), nights.audit.verify().chain
    lineage = lineage_of(nights.study, nights.name, outcome.model, part.number, part.cohort.digest, head)
    return Registry(nights.home, nights.site.registry).register(nights.study, outcome, lineage)


@task(task_run_name="settle who is champion after round {part.number}", **NO_TRACE)
@guards_patients
def settle_model(nights: SiteNights, part: RoundResult, version: Version) -> None:
    """Promote tonight's model, unless the champion is better beyond noise or a person has to look first."""
    Registry(nights.home, nights.site.registry).settle(nights.study.name, version.number, promote=part.takes_over)


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
