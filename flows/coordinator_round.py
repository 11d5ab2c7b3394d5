"""coordinator-round: open a round, ask, aggregate, publish, report."""

from __future__ import annotations

from typing import Any

from prefect import flow
from pydantic import Field

from spinney.base import Name, Settings
from spinney.errors import RoundVoid, SpinneyError
from spinney.flows.run_names import beginning, rename_run
from spinney.flows.served import coordinator_named
from spinney.house.coordinator_night import CoordinatorNights, Ended
from spinney.tasks.guarded import guarded
from spinney.tasks.notices import warn
from spinney.tasks.round import report_round, tidy_exchange
from spinney.tasks.start_sites import start_sites
from spinney.tasks.steps import Steps


class CoordinatorRoundInput(Settings):
    """A round of a study. Run with no input, it goes on with the round that was begun, or opens the next one."""

    coordinator: str = Field(
        "", max_length=64, description="Which house, by the name under which it is served here. Empty: the only one."
    )
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")
    number: int | None = Field(None, ge=1, description="Which round. Empty: the next, or the one that was begun.")


@flow(name="coordinator-round", flow_run_name=beginning)
def coordinator_round(run: CoordinatorRoundInput = CoordinatorRoundInput()) -> dict[str, Any]:  # noqa: B008
    """Open a round, ask the sites until it is over, and say who took part and what came of it."""
    with guarded():
        settings = coordinator_named(run.coordinator)
        nights = CoordinatorNights(settings, run.study)
        nights.exchange.say = warn
        with nights.alone():
            number = nights.number(run.number)
            done = nights.result(number)
            if done is not None:
                return unless_void(done)
            rename_run(nights.study.name, f"round {number}")
            if settings.start_sites:
                start_sites(settings.start_sites, nights.study.name, number)
            steps = Steps(nights.name, nights.study.name)
            ended = nights.run(number, steps)
            steps.end()
            nights.close(number, ended.plain())
            tell_of(ended)
            tidy_exchange(nights, everybodys=True)
            return unless_void(ended.plain())


def tell_of(ended: Ended) -> None:
    """The report; what only informs ends no night."""
    try:
        report_round(ended)
    except SpinneyError as reason:
        warn(f"there is no report of this round: {reason}")


def unless_void(result: dict[str, Any]) -> dict[str, Any]:
    """What came of a round; a void one fails, and says who was absent."""
    if not result["void"]:
        return result
    absent = "; ".join(f"{site}: {reason}" for site, reason in result["absent"].items())
    raise RoundVoid(f"round {result['round']} is void: {result['void']}" + (f" ({absent})" if absent else ""))
