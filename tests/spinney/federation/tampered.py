"""Rounds that stop too early, and coordinators that change an order on its way."""

from __future__ import annotations

import pytest

from spinney.algorithms.bofrf import BofrfSite
from spinney.errors import RoundVoid
from tests.spinney.in_process import Wood, study


def stopped(federation: Wood) -> Wood:
    with pytest.raises(RoundVoid):
        federation.run()
    return federation


def only_for(victim, step, change):
    """A coordinator that changes one site's order in one step."""
    return lambda name, site, order: change(order) if (name, site) == (step, victim) else order


def refusal(people, step, change, mode="masked") -> str:
    """Why elm refuses a changed order; the other three go on without it."""
    federation = Wood(study(privacy={"secure_sum": mode}), people, tamper=only_for("elm", step, change))
    federation.run()
    assert set(federation.outcomes) == {"ash", "beech", "cedar"}
    return federation.left_out["elm"]


def cheats(step, answer):
    """A site that does one step its own way."""
    honest = getattr(BofrfSite, step)
    return type("Cheat", (BofrfSite,), {step: lambda self, order: answer(self, honest(self, order))})
