"""The facts of a night from where they are: the round, the vault and the audit log."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.cohort.check_result import CheckResult
from spinney.cohort.pull_report import PullReport
from spinney.connectors.mlflow import CHAMPION, Registry
from spinney.house.round_messages import Over
from spinney.house.rounds import CoordinatorSession
from spinney.house.site_night import RoundResult, SiteNights
from spinney.reports.facts import NightFacts, RoundFacts, Standing, of_round
from spinney.scoring.monitor import Watch


def site_facts(
    nights: SiteNights,
    part: RoundResult | None,
    *,
    missed: str = "",
    pulled: PullReport | None = None,
    checked: CheckResult | None = None,
    standing: Standing | None = None,
    vector: Mapping[str, float] | None = None,
    watch: Watch | None = None,
) -> NightFacts:
    """A site's night. Without a part in a round, `missed` says why; a round that never began has the number 0."""
    outcome = part.outcome if part else None
    number = part.number if part else nights.rounds.unfinished or 0
    void = part.over.void if part else ""
    return NightFacts(
        nights.study,
        nights.name,
        number,
        nights.clock.now(),
        outcome=outcome,
        missed=missed or void,
        standing=standing or _standing(nights),
        pulled=pulled,
        division=checked.division if checked else None,
        quality=checked.quality if checked else None,
        drift=checked.drift if checked else None,
        lines=of_round(nights.audit.lines(), nights.study.name, number),
        vector=vector or {},
        peers=sorted({*outcome.credit} - {nights.name}) if outcome else (),
        watch=watch,
    )


def _standing(nights: SiteNights) -> Standing:
    """Nothing is new; who is champion stays so."""
    champion = Registry(nights.home, nights.site.registry).find(nights.study.name, CHAMPION)
    return Standing("", str(champion.number) if champion else "")


def round_facts(asking: CoordinatorSession, over: Over) -> RoundFacts:
    """A round as its coordinator saw it."""
    channel = asking.channel
    return RoundFacts(
        asking.study,
        channel.me,
        asking.round,
        channel.clock.now(),
        model=over.model,
        void=over.void,
        described=asking.described,
        absent=asking.left_out,
        figures=asking.figures,
        lines=of_round(channel.audit.lines(), asking.study.name, asking.round),
    )
