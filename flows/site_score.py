"""site-score: the champion's word about every patient whose outcome is still open, where the hospital wants it."""

from __future__ import annotations

from prefect import flow
from pydantic import Field

from spinney.base import Name, Settings
from spinney.flows.run_names import beginning, rename_run
from spinney.flows.served import site_named
from spinney.tasks.guarded import guarded
from spinney.tasks.scores import apply_champion, pull_open_rows, show_scores, write_to_fhir, write_to_table
from spinney.tasks.site import score_night_of


class SiteScoreInput(Settings):
    """Whom to score. Run with no input, it scores for the only study that is approved here."""

    site: str = Field(
        "", max_length=64, description="Which house, by the name under which it is served here. Empty: the only one."
    )
    study: Name | None = Field(None, description="Which study. Empty: the only one that is approved here.")


@flow(name="site-score", flow_run_name=beginning)
def site_score(run: SiteScoreInput = SiteScoreInput()) -> dict[str, int | str]:  # noqa: B008 (Prefect draws its form from it)
    """Pull the open rows, apply the champion, write back, forget who they are."""
    with guarded():
        site = site_named(run.site)
        night = score_night_of(site, run.study)
        rename_run(night.study.name, "scores", night.site)
        with night.alone():
            rows = pull_open_rows(site, night)
            said = apply_champion(night, rows)
            result: dict[str, int | str] = {
                "model": said.source.model,
                "version": said.source.version,
                "scored": said.scored,
                "called": said.called,
                "new": said.new,
                "in the table": write_to_table(night, said),
                "new in the FHIR server": write_to_fhir(night, said),
            }
        show_scores(night, result)
        return result
