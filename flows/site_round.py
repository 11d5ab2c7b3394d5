"""site-round: this site's part in one round, from its data to its own registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from pydantic import Field

from connectors.site_file import read_site
from connectors.site_night import SiteNights, told
from spinney.base import Name, Settings
from spinney.errors import RoundVoid
from tasks.cohort import CohortSpec, check_cohort, encode_cohort, pull_cohort
from tasks.errands import Steps
from tasks.round import look_at_roster, wait_for_opening


class SiteRound(Settings):
    """This site's part in a round. Run with no input, it takes part in the round that opens next."""

    site: Path = Field(Path("site.yaml"), description="The site's own file.")
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")
    number: int | None = Field(None, ge=1, description="Which round. Empty: the one that is open, or opens next.")


@flow(name="site-round", flow_run_name="a night")
def site_round(night: SiteRound = SiteRound()) -> dict[str, Any]:  # noqa: B008 (Prefect draws its form from it)
    """Pull, check, encode, answer the coordinator until the round is over, then choose, register and report."""
    nights = SiteNights(read_site(night.site), night.study)
    with nights.alone():
        done = nights.result(night.number) if night.number else None
        if done is not None:
            return done
        look_at_roster(nights)
        spec = CohortSpec(name=nights.study.name, study=nights.papers.folder / "study.yaml", site=night.site)
        cohort = nights.pinned or encode_cohort(check_cohort(pull_cohort(spec), spec), spec)
        opened = wait_for_opening(nights, night.number)
        steps = Steps(f"{nights.name}-round".lower())
        part = nights.take_part(opened, cohort, steps)
        steps.end()
        result = told(part)
        nights.close(part.number, result)
        if part.over.void:
            raise RoundVoid(f"round {part.number} is void: {part.over.void}; this site keeps the model that it has")
        return result
