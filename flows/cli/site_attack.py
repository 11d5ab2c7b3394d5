"""An attack on the trees that a site would lend, in words and for scripts."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from spinney.cohort.drift import accepted_cohorts
from spinney.cohort.encoded import encode_table
from spinney.configuration.site import SiteSettings
from spinney.errors import SourceFailed
from spinney.federation.lending import TOO_FEW, attacked
from spinney.study.study import Study


@dataclass(frozen=True)
class AttackAnswer:
    """What came of it."""

    lines: tuple[str, ...]
    data: dict[str, Any]


def attack_own_trees(study: Study, site: SiteSettings, seconds: float) -> AttackAnswer:
    """Grow what would be lent tonight, and attack it; on the newest cohort that has passed its checks."""
    known = site.vault.newest_whole(accepted_cohorts(site.vault, study))
    if known is None:
        raise SourceFailed("the vault has no cohort of this study that has passed its checks: spinney site check STUDY")
    floor, until = max(study.lent_leaf, site.lent_leaf or 0), time.monotonic() + seconds
    cohort = encode_table(site.vault, known[0], study)
    found = attacked(study, cohort, floor, jobs=os.cpu_count() or 1, go_on=lambda: time.monotonic() < until)
    if found is None:
        return AttackAnswer((TOO_FEW,), {"advantage": None, "why": TOO_FEW})
    largest, advantage = study.privacy.largest_advantage, found.verdict.advantage
    lines = [
        f"With leaves of {floor} patients, {found.words}.",
        f"Advantage {advantage.value:.3f} ({advantage.low:.3f} to {advantage.high:.3f}).",
    ]
    lends = largest is None or not found.above(largest)
    if largest is not None:
        said = (
            "not above it beyond doubt, so trees are lent" if lends else "above it beyond doubt, so no trees are lent"
        )
        lines.append(f"The study allows {largest:g}: {said}.")
    figures = {"auc": found.verdict.auc, "found": found.verdict.found, "advantage": advantage}
    data = {name: {"value": one.value, "low": one.low, "high": one.high} for name, one in figures.items()}
    return AttackAnswer(tuple(lines), {**data, "leaf": floor, "lends": lends})
