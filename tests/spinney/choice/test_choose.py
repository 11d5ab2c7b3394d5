"""What a night comes to: a choice, its measurement, and what becomes of the champion."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.choice.choose import outcome_of
from spinney.choice.incumbent import Incumbent
from spinney.choice.personalise import Candidate, Chooser
from tests.spinney.choice.choosers import chooser_at
from tests.spinney.in_process import Wood, cohorts, study


@pytest.fixture(scope="module")
def over() -> Wood:
    wood = study()
    made = Wood(wood, cohorts(wood))
    made.run()
    return made


def test_the_model_is_the_one_that_was_decided_for(over: Wood) -> None:
    chooser = chooser_at(over)
    outcome = outcome_of(chooser)
    assert outcome.decision.name == chooser.decide().name
    assert outcome.model.digest == chooser.model(outcome.decision).digest
    assert outcome.model.digest == over.outcomes["elm"].model.digest


def test_what_a_reader_must_know_of_a_candidate_is_in_the_outcome(over: Wood) -> None:
    chooser = chooser_at(over)
    chosen = chooser.candidates["bofrf"]
    chooser.candidates["bofrf"] = Candidate(chosen.name, chosen.weigh, "votes are equal tonight")
    assert "votes are equal tonight" in outcome_of(chooser).decision.notes


def test_without_a_champion_nobody_succeeds_anybody(over: Wood) -> None:
    assert outcome_of(chooser_at(over)).succession is None


def test_a_champion_is_judged_on_the_same_rows(over: Wood) -> None:
    first = chooser_at(over)
    model = outcome_of(first).model
    own = np.flatnonzero(np.asarray(model.owners_) == "elm")
    champion = Incumbent("1", model, own, np.ones((len(first.cohort), len(own)), dtype=bool))
    candidates = [*first.candidates.values()]
    succession = outcome_of(
        Chooser(first.study, first.cohort, first.pool, candidates, first.rules, champion)
    ).succession
    assert succession is not None
    assert succession.champion == "1"
