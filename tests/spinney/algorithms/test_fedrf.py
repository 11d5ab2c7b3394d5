"""FedRF: every tree of every site, one vote each."""

from __future__ import annotations

from spinney.trial.simulate import simulate
from tests.spinney.in_process import SITES, cohorts, study


def test_fedrf_gives_every_tree_one_vote():
    wood = study(algorithm={"name": "fedrf"})
    outcome = simulate(wood, cohorts(wood)).outcomes["ash"]
    assert set(outcome.model.weights_) == {1.0}
    assert [*outcome.model.owners_] == [name for name in SITES for _ in range(6)]
    assert outcome.decision.name == "fedrf"
