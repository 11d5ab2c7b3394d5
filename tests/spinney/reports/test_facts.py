"""What a report is made of, read off the audit log."""

from __future__ import annotations

from spinney.reports.facts import steps_in
from tests.spinney.reports.reported import round_facts, wood


def test_steps_are_timed_and_an_answer_that_was_read_twice_came_once():
    facts = round_facts(wood())
    grow = steps_in(facts.lines)[1]
    assert (grow.name, grow.answers, grow.bytes, grow.seconds) == ("grow", 6, 900 + 6 * 1400, 42.0)
    twice = [*facts.lines[:14], *facts.lines[8:14], *facts.lines[14:]]
    assert steps_in(twice)[1].bytes == grow.bytes
