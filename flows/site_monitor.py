"""site-monitor: does the champion keep its promise, now that outcomes are known? If not, the run fails and says so."""

from __future__ import annotations

from prefect import flow
from pydantic import Field

from spinney.base import Name, Settings
from spinney.errors import SpinneyError
from spinney.flows.run_names import beginning, rename_run
from spinney.flows.served import site_named
from spinney.house.approvals import Approvals, the_study
from spinney.tasks.guarded import guarded
from spinney.tasks.scores import show_watch, watch_champion
from spinney.tasks.site import keep_to_permit


class SiteMonitorInput(Settings):
    """What to watch. Run with no input, it watches the only study that is approved here."""

    site: str = Field(
        "", max_length=64, description="Which house, by the name under which it is served here. Empty: the only one."
    )
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")


class BelowPromise(SpinneyError):
    """The model in use is worse than it was said to be, beyond noise; a round with new data is wished."""


@flow(name="site-monitor", flow_run_name=beginning)
def site_monitor(run: SiteMonitorInput = SiteMonitorInput()) -> dict[str, int | str]:  # noqa: B008 (Prefect draws its form from it)
    """Hold what was said against what happened, show it, and raise the alarm if that is called for."""
    with guarded():
        site = site_named(run.site)
        study = Approvals(site.home, run.study or the_study(site.home)).study
        keep_to_permit(site, study)
        rename_run(study.name, "the model in use", site.name)
        seen = watch_champion(site, study)
        if seen is None:
            return {"study": study.name, "known": 0, "waiting": 0}
        show_watch(site, study, seen)
        if seen.alerts:
            raise BelowPromise(f"{'; '.join(seen.alerts)}; a round with new data is wished")
        return {"study": study.name, "version": seen.version, "known": seen.known, "waiting": seen.waiting}
