"""site-round: this site's part in one round, from its data to its own registry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prefect import flow, runtime
from prefect.logging import get_run_logger
from pydantic import Field

from spinney.base import Name, Settings
from spinney.cohort.check_result import CheckResult
from spinney.cohort.pull import PullReport
from spinney.cohort.vault import CohortRef
from spinney.configuration.site import read_site
from spinney.errors import RoundVoid, SpinneyError
from spinney.flows.admit import admit
from spinney.flows.run_names import named_by, rename_run
from spinney.house.admission import NOT_NEEDED, WAITING
from spinney.house.site_night import NotOpened, RoundResult, SiteNights, summary_of
from spinney.reports.gather import site_facts
from spinney.tasks.cohort import CohortSpec, check_cohort, encode_cohort, pull_cohort
from spinney.tasks.guarded import guarded
from spinney.tasks.notices import warn
from spinney.tasks.preload import preload, preloaded
from spinney.tasks.round import (
    look_at_roster,
    register_model,
    report_night,
    settle_model,
    standing,
    tidy_exchange,
    wait_for_opening,
)
from spinney.tasks.steps import Steps

MANUAL, ADMISSION = "manual", "admission"


class SiteRoundInput(Settings):
    """This site's part in a round. Run with no input, it takes part in the round that opens next."""

    site: Path = Field(Path("site.yaml"), description="The site's own file.")
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")
    number: int | None = Field(None, ge=1, description="Which round. Empty: the one that is open, or opens next.")
    admission: Literal["as set", "manual"] = Field(
        "as set",
        description="Who lets the model be used: as site.yaml and the study say, or manual: a steward in any case.",
    )


@flow(name="site-round", flow_run_name=named_by("night"))
def site_round(night: SiteRoundInput = SiteRoundInput()) -> dict[str, Any]:  # noqa: B008 (Prefect draws its form from it)
    """Pull, check, encode, answer the coordinator until the round is over, then choose, register and report."""
    with guarded():
        nights = SiteNights(read_site(night.site), night.study)
        nights.exchange.say = warn
        with nights.alone():
            result = ended_before(nights, night.number)
            if result is None:
                try:
                    result = take_part(nights, night)
                finally:
                    tidy_exchange(nights)
            return admit(nights, result) if result["admission"] == WAITING else result


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


def take_part(nights: SiteNights, night: SiteRoundInput) -> dict[str, Any]:
    """The night itself; one that came to nothing has a report, too, and keeps the champion."""
    preload(local_registry=not nights.site.registry.tracking)
    tonight = Tonight()
    try:
        part = answered(nights, night, tonight)
        version = register_model(nights, part)
    except SpinneyError as reason:
        report_night(nights, site_facts(nights, None, missed=str(reason), **tonight.known))
        if isinstance(reason, RoundVoid):
            nights.give_up(str(reason))
        raise
    waits = part.takes_over and is_manual(nights, night, part.number)
    if not waits:
        settle_model(nights, part, version)
    report_night(nights, site_facts(nights, part, standing=standing(nights, version), **tonight.known))
    result = {
        **summary_of(part),
        "version": version.number,
        "admission": WAITING if waits else NOT_NEEDED,
        "run": str(runtime.flow_run.id),
    }
    nights.close(part.number, result)
    return result


def is_manual(nights: SiteNights, night: SiteRoundInput, number: int) -> bool:
    """Whether a steward decides about the model of a round: by the settings, or because whoever ran it wished so."""
    wished = night.admission, nights.memory(number).get(ADMISSION)
    return MANUAL in (nights.site.admission, nights.study.choice.admission, *wished)


def answered(nights: SiteNights, night: SiteRoundInput, tonight: Tonight) -> RoundResult:
    """From the patients to the end of a round. One that ended while this site was away doesn't cost it tonight's."""
    look_at_roster(nights)
    begun = nights.rounds.unfinished
    try:
        return taken_part(nights, night, tonight)
    except RoundVoid as reason:
        if begun is None or begun != nights.rounds.unfinished or night.number or isinstance(reason, NotOpened):
            raise
        get_run_logger().warning("%s; now for the next round", reason)
        nights.give_up(str(reason))
        return taken_part(nights, night, tonight)


def taken_part(nights: SiteNights, night: SiteRoundInput, tonight: Tonight) -> RoundResult:
    """One round. A round that was begun goes on with the cohort that it has."""
    begun, pinned = nights.rounds.unfinished, nights.pinned
    cohort = pinned or checked_cohort(nights, night.site, tonight)
    opened = wait_for_opening(nights, night.number)
    if pinned and opened.number != begun:
        cohort = checked_cohort(nights, night.site, tonight)
    rename_run(nights.study.name, f"round {opened.number}", nights.name)
    if night.admission == MANUAL:
        nights.memory(opened.number)[ADMISSION] = MANUAL  # also for the run that goes on if this one is killed
    preloaded()
    steps = Steps(nights.name, nights.study.name)
    part = nights.take_part(opened, cohort, steps)
    if part.number != opened.number:  # a new coordinator has left the round that this run began with
        rename_run(nights.study.name, f"round {part.number}", nights.name)
    steps.end()
    part.require()
    return part


@dataclass
class Tonight:
    """What the night has found out so far, for its report. After a restart nobody knows how the cohort came."""

    pulled: PullReport | None = None
    checked: CheckResult | None = None

    @property
    def known(self) -> dict[str, Any]:
        return {"pulled": self.pulled, "checked": self.checked}


def checked_cohort(nights: SiteNights, site: Path, tonight: Tonight) -> CohortRef:
    """Tonight's patients, if they keep the study's rules."""
    spec = CohortSpec(name=nights.study.name, study=nights.approvals.folder / "study.yaml", site=site)
    pulled = pull_cohort(spec)
    tonight.pulled = pulled.report
    preloaded()
    tonight.checked = check_cohort(pulled, spec)
    tonight.checked.quality.require()
    return encode_cohort(pulled.cohort, spec)
