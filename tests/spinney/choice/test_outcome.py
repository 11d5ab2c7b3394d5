"""Whether a night's model may be used without asking anybody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.choice.outcome import Outcome, Succession
from tests.spinney.in_process import Wood, cohorts, study


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    federation = Wood(study(), cohorts(study()))
    federation.run()
    return federation.outcomes["ash"]


def test_without_a_question_and_without_a_champion_a_model_takes_over(outcome: Outcome):
    assert outcome.takes_over


def test_a_question_is_for_a_person(outcome: Outcome):
    asked = replace(outcome.decision, question="are the labels the right way round?")
    assert not replace(outcome, decision=asked).takes_over


@pytest.mark.parametrize("replaces", [True, False])
def test_a_champion_goes_if_it_was_beaten_and_stays_if_not(outcome: Outcome, replaces: bool):
    assert replace(outcome, succession=Succession("3", replaces, "so it is")).takes_over is replaces


def test_the_model_is_not_in_what_is_printed(outcome: Outcome):
    assert "model=" not in repr(outcome)
