"""Logistic regressions among which a site can choose."""

from __future__ import annotations

import numpy as np

from spinney.choice.metrics import auroc, probability_of
from spinney.federation.linear_candidates import common_candidate, local_candidates
from spinney.rows.parts import Part
from tests.spinney.in_process import Wood, cohorts, study


def test_a_site_alone_has_two_and_with_others_one_more():
    wood = study(algorithm={"name": "linear"})
    people = cohorts(wood)
    federation = Wood(wood, people)
    federation.run()
    training = people["ash"].rows(Part.TRAINING)
    alone = local_candidates(training, wood, 10.0)
    assert [(one.name, one.beside, one.common) for one in alone] == [
        ("local linear", "", False),
        ("local blend", "local", False),
    ]
    terms = federation.order("finish").terms
    common = common_candidate("blend", terms, training, wood, summed=True, beside="bofrf")
    assert (common.beside, common.common) == ("bofrf", True)
    for one in (*alone, common):
        assert np.isfinite(one.honest).all()
        assert auroc(training.y, probability_of(one.honest)) > 0.7
