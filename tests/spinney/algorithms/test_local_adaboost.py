"""Local AdaBoost, BOPPID's own baseline."""

from __future__ import annotations

from spinney.trial.simulate import simulate
from tests.spinney.in_process import cohorts, study


def test_local_adaboost_is_boppid_without_the_others():
    together, alone = (
        simulate(study(algorithm={"name": name}, forest={"trees": 12}), cohorts(study())).outcomes["ash"]
        for name in ("boppid", "local-adaboost")
    )
    assert alone.auroc["local"] == together.auroc["local"]
