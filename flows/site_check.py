"""site-check: tonight's patients pulled and held against the study; nothing is sent."""

from __future__ import annotations

from typing import Any

from prefect import flow
from pydantic import Field

from spinney.base import Name, Settings
from spinney.flows.run_names import beginning
from spinney.flows.served import site_named
from spinney.house.approvals import Approvals, the_study
from spinney.tasks.cohort import check_cohort, encode_cohort, pull_cohort
from spinney.tasks.guarded import guarded
from spinney.tasks.site import keep_to_permit


class SiteCheckInput(Settings):
    """A look at this site's own data. Run with no input, it looks at the only study that is approved here."""

    site: str = Field(
        "", max_length=64, description="Which house, by the name under which it is served here. Empty: the only one."
    )
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")


@flow(name="site-check", flow_run_name=beginning)
def site_check(run: SiteCheckInput = SiteCheckInput()) -> dict[str, Any]:  # noqa: B008 (Prefect draws its form from it)
    """Pull and check the cohort; fails if a critical rule is broken, as tonight's round would."""
    with guarded():
        site = site_named(run.site)
        approvals = Approvals(site.home, run.study or the_study(site.home))
        keep_to_permit(site, approvals.study)
        pulled = pull_cohort(site, approvals.study)
        checked = check_cohort(site, approvals.study, pulled)
        checked.quality.require()
        encode_cohort(site, approvals.study, pulled.cohort)
        return {"rows": pulled.cohort.rows, "digest": pulled.cohort.digest, "docs": str(checked.docs)}
