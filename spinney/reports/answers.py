"""Three lines that a night begins with, on every page and in every message: better, to be trusted, what left."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from spinney.choice.answers import NightAnswer, better, trusted
from spinney.house.audit import Line
from spinney.reports.facts import NightFacts, of_round
from spinney.reports.html import el, size


def night_answers(facts: NightFacts) -> tuple[NightAnswer, NightAnswer, NightAnswer]:
    """What whoever opens the page wants to know."""
    first = better(facts.outcome)
    if facts.outcome is None and facts.missed:
        first = first._replace(words=f"There is no new model: {facts.missed.rstrip('.')}.")
    return first, trusted(facts.outcome, _beside(facts)), left_the_house(_sent(facts))


def _beside(facts: NightFacts) -> tuple[str, ...]:
    """What else makes one look twice."""
    said = []
    if facts.drift is not None and (moved := facts.drift.warnings):
        said.append(f"{len(moved)} columns drifted" if len(moved) > 1 else "one column drifted")
    if facts.quality is not None and (failed := facts.quality.failures("critical")):
        said.append(f"{len(failed)} critical rules not kept")
    return tuple(said)


def _sent(facts: NightFacts) -> list[Line]:
    return [line for line in of_round(facts.lines, facts.study.name, facts.round) if line.entry.direction == "sent"]


def left_the_house(lines: Sequence[Line]) -> NightAnswer:
    """Bytes and messages by the audit log."""
    question = "What left the house?"
    if not lines:
        return NightAnswer(question, "+", "Nothing.")
    total = size(sum(line.entry.bytes for line in lines))
    return NightAnswer(question, "+", f"{total} in {len(lines)} messages, none of a patient.")


def answers_list(answers: Sequence[NightAnswer]) -> Element:
    """As the top of a page: the mark, the question, the words."""
    items = [el("li", el("b", f"{one.mark} {one.question}"), f" {one.words}") for one in answers]
    return el("ul", *items, class_="answers")


def answers_markdown(answers: Sequence[NightAnswer]) -> str:
    """The same for an artifact."""
    return "\n".join(f"- **{one.mark} {one.question}** {one.words}" for one in answers)
