"""Who chooses at a site when a round is over."""

from __future__ import annotations

from spinney.choice.personalise import Chooser
from tests.spinney.in_process import Wood


def chooser_at(made: Wood, name: str = "elm") -> Chooser:
    site, order = made.site(name), made.order("finish", name)
    pool = site.pool(order.manifest)
    return Chooser(made.study, site.house.cohort, pool, *site.candidates(pool, order))
