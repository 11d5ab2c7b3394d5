"""Repeats: the first is the study as it stands, the others divide the same patients anew."""

from __future__ import annotations

from spinney.trial.repeats import repeats, reseeded
from spinney.trial.simulate import simulate
from tests.spinney.in_process import cohorts, study


def test_the_first_split_is_the_study_s_own_and_the_others_have_the_next_seeds():
    wood = study(split={"seed": 41})
    seen = []
    run = list(repeats(wood, lambda again: seen.append(again.split.seed) or cohorts(again), lambda done: done < 3))
    assert seen == [41, 42, 43]
    assert run[0].model_digest == simulate(wood, cohorts(wood)).model_digest
    assert len({one.model_digest for one in run}) == 3


def test_seeds_begin_again_where_they_end():
    assert reseeded(study(split={"seed": 2**32 - 1}), 1).split.seed == 0
    assert reseeded(study(), 0) == study()
