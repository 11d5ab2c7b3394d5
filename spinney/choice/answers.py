"""The first two of three lines that a night begins with everywhere: better? and may we trust it?

The third, what left the house, is the audit log's to say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from spinney.choice.outcome import Outcome, Subgroup
from spinney.choice.verdict import verdict_of

FINE, LOOK, UNKNOWN = "+", "!", "?"
CLOSE = 0.05  # predicted and observed shares that differ by more are worth a look
FALLS = 0.1  # of AUROC, in a group of patients, below that of all


class NightAnswer(NamedTuple):
    """A question that everybody asks, a mark for those who skim, and words."""

    question: str
    mark: str
    words: str

    @property
    def line(self) -> str:
        """All of it."""
        return f"{self.mark} {self.question} {self.words}"


def better(outcome: Outcome | None) -> NightAnswer:
    """Is it better than what the site could have alone?"""
    if outcome is None:
        return NightAnswer("Better?", UNKNOWN, "There is no new model.")
    verdict = verdict_of(outcome.gain.get("auroc"), outcome.patients)
    said = verdict.sentence
    return NightAnswer("Better?", verdict.mark, f"{said[:1].upper()}{said[1:]}.")


def trusted(outcome: Outcome | None, more: tuple[str, ...] = ()) -> NightAnswer:
    """Calibration, the weakest group, an open question, and what else there is to look at (drift, who was absent)."""
    question = "May we trust it?"
    if outcome is None:
        return NightAnswer(question, UNKNOWN, "; ".join([*more, "nothing was measured"]).capitalize() + ".")
    warnings = [*_warnings(outcome), *more]
    said = [*warnings, *_fine(outcome)] or ["too few patients to measure on"]
    mark = LOOK if warnings else FINE if outcome.figures else UNKNOWN
    words = "; ".join(said)
    return NightAnswer(question, mark, f"{words[:1].upper()}{words[1:]}.")


def _warnings(outcome: Outcome) -> Iterator[str]:
    if outcome.decision.question:
        yield "a person has to look: " + outcome.decision.question.rstrip(".?")
    predicted, observed = shares(outcome)
    if abs(predicted - observed) > CLOSE:
        yield f"it predicts {predicted:.0%} where {observed:.0%} happened"
    weakest = weakest_group(outcome) if "auroc" in outcome.figures else None
    if weakest is not None and weakest.figures["auroc"].value < outcome.figures["auroc"].value - FALLS:
        yield f"weaker for {weakest.name} (AUROC {weakest.figures['auroc'].value:.2f})"


def _fine(outcome: Outcome) -> Iterator[str]:
    predicted, observed = shares(outcome)
    if abs(predicted - observed) <= CLOSE:
        yield f"predicted {predicted:.0%}, observed {observed:.0%}"
    told = [one for one in outcome.subgroups if one.patients is not None]
    if told:
        smallest = min(told, key=lambda one: (one.patients or 0, one.name))
        yield f"smallest group measured: {smallest.name}, about {smallest.patients} patients"


def shares(outcome: Outcome) -> tuple[float, float]:
    """Mean probability and share of positives on test rows; NaN where nothing was measured."""
    bins = outcome.calibration.bins if outcome.calibration is not None else ()
    rows = sum(one.rows for one in bins)
    if not rows:
        return math.nan, math.nan
    predicted = sum(one.predicted * one.rows for one in bins) / rows
    return predicted, sum(one.observed * one.rows for one in bins) / rows


def weakest_group(outcome: Outcome) -> Subgroup | None:
    """The group of patients in which it ranks worst, among those that are large enough to be told of."""
    told = [one for one in outcome.subgroups if "auroc" in one.figures]
    return min(told, key=lambda one: one.figures["auroc"].value) if told else None
