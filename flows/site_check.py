"""site-check: tonight's patients pulled and held against the study; nothing is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from pydantic import Field

from spinney.base import Name, Settings
from spinney.configuration.site import read_site
from spinney.flows.run_names import named_by
from spinney.house.approvals import Approvals, the_study
from spinney.tasks.cohort import CohortSpec, check_cohort, encode_cohort, pull_cohort
from spinney.tasks.guarded import guarded


class SiteCheck(Settings):
    """A look at this site's own data. Run with no input, it looks at the only study that is approved here."""

    site: Path = Field(Path("site.yaml"), description="The site's own file.")
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")


@flow(name="site-check", flow_run_name=named_by("check"))
def site_check(check: SiteCheck = SiteCheck()) -> dict[str, Any]:  # noqa: B008 (Prefect draws its form from it)
    """Pull and check the cohort; fails if a critical rule is broken, as tonight's round would."""
    with guarded():
        site = read_site(check.site)
        approvals = Approvals(site.home, check.study or the_study(site.home))
        spec = CohortSpec(name=approvals.study.name, study=approvals.folder / "study.yaml", site=check.site)
        pulled = pull_cohort(spec)
        checked = check_cohort(pulled, spec)
        checked.quality.require()
        encode_cohort(pulled.cohort, spec)
        return {"rows": pulled.cohort.rows, "digest": pulled.cohort.digest, "docs": str(checked.docs)}
