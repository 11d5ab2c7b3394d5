"""A steward's yes or no in the Prefect UI: the run is suspended until then, and the night itself is long over."""

from __future__ import annotations

from typing import Any

from prefect import runtime
from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from prefect.logging import get_run_logger
from pydantic import Field

from spinney.house.admission import Admission, SignatureRefused, admission_of, settle
from spinney.house.site_night import SiteNights

PATIENCE = 7 * 24 * 3600
MOST_TRIES = 20


class StewardsAnswer(RunInput):
    """May this model be used here?"""

    approve: bool = Field(False, description="Whether the model may be used at this site.")
    steward: str = Field("", description="Your name, as site.yaml lists it.")
    signature: str = Field("", description="What `spinney admission sign` has printed for this answer.")


def await_steward(nights: SiteNights, result: dict[str, Any]) -> dict[str, Any]:
    """Wait for an answer that a steward has signed; where no deployment draws a form, the command line serves."""
    asked = admission_of(nights.study, result)
    if runtime.deployment.id is None:
        get_run_logger().warning(
            "version %s waits for a steward: spinney admission decide %s %s",
            result["version"],
            asked.study,
            asked.round,
        )
        return result
    trouble = ""
    for attempt in range(1, MOST_TRIES + 1):
        answer = suspend_flow_run(
            wait_for_input=StewardsAnswer.with_initial_data(
                description=question(asked, result, trouble), approve=False, steward="", signature=""
            ),
            timeout=PATIENCE,
            key=f"admission-{asked.round}-{attempt}",
        )
        try:
            settled = settle(nights, result, answer.steward, answer.approve, answer.signature)
        except SignatureRefused as reason:
            trouble = str(reason)
            continue
        if settled["note"]:
            get_run_logger().warning(settled["note"])
        return settled
    raise SignatureRefused(
        f"{MOST_TRIES} answers were not signed by a steward; version {result['version']} stays a candidate"
    )


def question(asked: Admission, result: dict[str, Any], trouble: str) -> str:
    """What the steward reads."""
    choice = result["choice"]
    sign = f"`spinney admission sign {asked.study} {asked.round} --yes` (or `--no`)"
    return "\n\n".join(
        [
            *([f"**The last answer did not count:** {trouble}"] if trouble else []),
            f"**May the model of round {asked.round} of {asked.study} be used at this site?**",
            f"It has {choice['trees']} trees of {choice['sites']} sites; every tree passed this site's checks. "
            f"Chosen: {choice['name']}, because {choice['reason']}. {choice['gain']}",
            f"Model digest `{asked.model}`. Sign your answer with {sign} and paste the signature.",
        ]
    )
