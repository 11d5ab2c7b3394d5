"""Choose, measure, and say what becomes of the champion."""

from __future__ import annotations

from dataclasses import replace

from spinney.choice.measure import measured
from spinney.choice.outcome import Outcome
from spinney.choice.personalise import Chooser


def outcome_of(chooser: Chooser) -> Outcome:
    """What a night comes to at a site."""
    decision = chooser.decide()
    said = dict.fromkeys(chooser.note(name) for name in (chooser.rules.default, decision.name))
    decision = replace(decision, notes=(*decision.notes, *filter(None, said)))
    outcome = measured(chooser, decision, chooser.model(decision))
    if chooser.incumbent is None:
        return outcome
    challenge = chooser.challenge(decision.name)
    return replace(outcome, succession=challenge.succession(chooser.incumbent, decision, chooser.rules.judged))
