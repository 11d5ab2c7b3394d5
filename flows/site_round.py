"""site-round: this site's part in one round, from its data to its own registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from prefect import flow, runtime
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from pydantic import Field

from spinney.base import Name, Settings
from spinney.cohort.check_result import CheckResult
from spinney.cohort.patients import Patients
from spinney.cohort.pull_report import PullReport
from spinney.cohort.vault import CohortDamaged
from spinney.configuration.site import SiteSettings
from spinney.errors import RoundVoid, SpinneyError
from spinney.flows.admit import await_steward
from spinney.flows.run_names import beginning, rename_run
from spinney.flows.served import site_named
from spinney.house.admission import NOT_NEEDED, WAITING
from spinney.house.site_night import NotOpened, RoundResult, SiteNights, summary_of
from spinney.reports.facts import NightFacts, Standing
from spinney.reports.gather import site_facts
from spinney.rows.cohort_ref import CohortRef
from spinney.tasks.cohort import check_cohort, encode_cohort, pull_cohort
from spinney.tasks.guarded import guarded
from spinney.tasks.notices import warn
from spinney.tasks.preload import preload, preloaded
from spinney.tasks.retries import through_the_night
from spinney.tasks.round import (
    decline_round,
    look_at_roster,
    put_model_by,
    register_model,
    register_what_is_owed,
    report_night,
    standing,
    tidy_exchange,
    wait_for_opening,
)
from spinney.tasks.site import keep_to_permit, patients_of, watch_of
from spinney.tasks.steps import Steps

MANUAL, ADMISSION = "manual", "admission"


class NotRegistered(SpinneyError):
    """The round was no trouble, the registry is."""


class SiteRoundInput(Settings):
    """This site's part in a round. Run with no input, it takes part in the round that opens next."""

    site: str = Field(
        "", max_length=64, description="Which house, by the name under which it is served here. Empty: the only one."
    )
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")
    number: int | None = Field(None, ge=1, description="Which round. Empty: the one that is open, or opens next.")
    admission: Literal["as set", "manual"] = Field(
        "as set",
        description="Who lets the model be used: as site.yaml and the study say, or manual: a steward in any case.",
    )


@flow(name="site-round", flow_run_name=beginning)
def site_round(run: SiteRoundInput = SiteRoundInput()) -> dict[str, Any]:  # noqa: B008 (Prefect draws its form from it)
    """Pull, check, encode, answer the coordinator until the round is over, then choose, register and report."""
    with guarded():
        site = site_named(run.site)
        nights = SiteNights(site, run.study)
        nights.exchange.say = warn
        with nights.alone():
            keep_to_permit(site, nights.study, nights.give_up)
            register_what_is_owed(nights)
            result = ended_before(nights, run.number)
            if result is None:
                try:
                    result = take_part(Tonight(run, site, nights, patients_of(site, nights.study)))
                finally:
                    tidy_exchange(nights)
            return await_steward(nights, result) if result["admission"] == WAITING else result


def ended_before(nights: SiteNights, number: int | None) -> dict[str, Any] | None:
    """A round that has its result, asked for by number or resumed after a steward's answer, is not run again.

    The steward may take longer than a day: a resumed run finds its own round, whatever came of later ones.
    """
    me = str(runtime.flow_run.id)
    mine = next((result for result in nights.results() if result.get("run") == me), None)
    result = mine if number is None else nights.result(number)
    if result is not None and result["void"]:
        raise RoundVoid(result["void"])
    return result


@dataclass
class Tonight:
    """What was asked for, the house, and what the night has found out so far.

    After a restart nobody knows how the cohort came.
    """

    run: SiteRoundInput
    site: SiteSettings
    nights: SiteNights
    patients: Patients
    pulled: PullReport | None = None
    checked: CheckResult | None = None

    def facts(self, part: RoundResult | None = None, standing: Standing | None = None, missed: str = "") -> NightFacts:
        """For the report."""
        vector = self.patients.told_vector(part.cohort) if part else {}
        watch = watch_of(self.site, self.nights.study)
        return site_facts(
            self.nights,
            part,
            missed=missed,
            standing=standing,
            pulled=self.pulled,
            checked=self.checked,
            vector=vector,
            watch=watch,
        )


def take_part(tonight: Tonight) -> dict[str, Any]:
    """The night itself; one that came to nothing has a report, too, and keeps the champion."""
    nights = tonight.nights
    preload(local_registry=not nights.site.registry.tracking)
    try:
        look_at_roster(nights)
        earlier = finish_earlier(tonight)
        if earlier is not None and not is_by_schedule() and not nights.is_open():
            return earlier
        return kept(tonight, answered(tonight))
    except NotRegistered:
        raise
    except SpinneyError as reason:
        why = str(reason)
        inform(nights, lambda: tonight.facts(missed=why))
        if isinstance(reason, RoundVoid | CohortDamaged):
            nights.give_up(why)
        raise


def kept(tonight: Tonight, part: RoundResult) -> dict[str, Any]:
    """What came of a round is kept, and its model registered, by a later run if this one can't."""
    nights = tonight.nights
    waits = part.takes_over and is_manual(nights, tonight.run, part.number)
    put_model_by(nights, part, waits=waits)
    result = {
        **summary_of(part),
        "version": 0,
        "admission": WAITING if waits else NOT_NEEDED,
        "run": str(runtime.flow_run.id),
    }
    try:
        version = register_model(nights, part.number)
    except SpinneyError as reason:
        inform(nights, lambda: tonight.facts(part, Standing()))
        nights.close(part.number, result)
        raise NotRegistered(
            f"round {part.number} is done and its model is kept, and the next run registers it: {reason}"
        ) from None
    result["version"] = version.number
    inform(nights, lambda: tonight.facts(part, standing(nights, version)))
    nights.close(part.number, result)
    return result


def finish_earlier(tonight: Tonight) -> dict[str, Any] | None:
    """A round that was over when this site was away; whatever comes of it, it keeps nobody from tonight's."""
    nights = tonight.nights
    found = None if tonight.run.number else nights.left_over()
    if found is None:
        return None
    try:
        cohort = nights.pinned
        if cohort is None:
            raise RoundVoid(f"round {found.number} ended before this site had patients in it")
        steps = Steps(nights.name, nights.study.name)
        part = nights.take_part(found, cohort, tonight.patients, steps)
        steps.end()
        part.require()
        return kept(tonight, part)
    except SpinneyError as reason:
        warn(f"round {found.number} ended while this site was away: {reason}")
        nights.give_up(str(reason))
        return None


def is_by_schedule() -> bool:
    """Whether this run is a night of its own, not one that somebody started or that goes on with one."""
    context = FlowRunContext.get()
    return context is not None and context.flow_run is not None and context.flow_run.auto_scheduled


def inform(nights: SiteNights, facts: Callable[[], NightFacts]) -> None:
    """The report; what only informs ends no night."""
    try:
        with guarded():
            report_night(nights, facts())
    except SpinneyError as reason:
        warn(f"there is no report of this night: {reason}")


def is_manual(nights: SiteNights, run: SiteRoundInput, number: int) -> bool:
    """Whether a steward decides about the model of a round: by the settings, or because whoever ran it wished so."""
    wished = run.admission, nights.memory(number).get(ADMISSION)
    return MANUAL in (nights.site.admission, nights.study.choice.admission, *wished)


def answered(tonight: Tonight) -> RoundResult:
    """From the patients to the end of a round. One that ended while this site was away doesn't cost it tonight's."""
    nights = tonight.nights
    begun = nights.rounds.unfinished
    try:
        return taken_part(tonight)
    except RoundVoid as reason:
        if begun is None or begun != nights.rounds.unfinished or tonight.run.number or isinstance(reason, NotOpened):
            raise
        get_run_logger().warning("%s; now for the next round", reason)
        nights.give_up(str(reason))
        return taken_part(tonight)


def taken_part(tonight: Tonight) -> RoundResult:
    """One round. A round that was begun goes on with the cohort that it has."""
    nights, run = tonight.nights, tonight.run
    begun, pinned = nights.rounds.unfinished, nights.pinned
    cohort = pinned or cohort_or_no(tonight)
    opened = wait_for_opening(nights, run.number)
    if pinned and opened.number != begun:
        cohort = cohort_or_no(tonight)
    rename_run(nights.study.name, f"round {opened.number}", nights.name)
    if run.admission == MANUAL:
        nights.memory(opened.number)[ADMISSION] = MANUAL  # also for the run that goes on if this one is killed
    preloaded()
    steps = Steps(nights.name, nights.study.name)
    part = nights.take_part(opened, cohort, tonight.patients, steps)
    if part.number != opened.number:  # a new coordinator has left the round that this run began with
        rename_run(nights.study.name, f"round {part.number}", nights.name)
    steps.end()
    part.require()
    return part


def cohort_or_no(tonight: Tonight) -> CohortRef:
    """Tonight's patients; where there are none to take part with, the coordinator hears it as soon as it asks."""
    try:
        return checked_cohort(tonight)
    except SpinneyError as reason:
        if tonight.run.number is None:
            decline_round(tonight.nights, reason)
        raise


def checked_cohort(tonight: Tonight) -> CohortRef:
    """Tonight's patients, if they keep the study's rules."""
    site, study = tonight.site, tonight.nights.study
    pulled = pull_cohort.with_options(**through_the_night(study.schedule.answer_minutes))(site, study)
    tonight.pulled = pulled.report
    preloaded()
    tonight.checked = check_cohort(site, study, pulled)
    tonight.checked.quality.require()
    return encode_cohort(site, study, pulled.cohort)
