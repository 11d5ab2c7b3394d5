"""Three lines before everything else: better, to be trusted, what left."""

from __future__ import annotations

from dataclasses import replace

from spinney.cohort.drift import Drift, Shift
from spinney.reports.answers import left_the_house, night_answers
from spinney.reports.site import site_page
from spinney.reports.words import night_markdown
from tests.spinney.reports.reported import night_facts, texts


def test_page_and_artifact_begin_with_the_same_three_lines(facts):
    page, artifact = texts(site_page(facts)), night_markdown(facts)
    for place, answer in enumerate(night_answers(facts)):
        assert answer.question == ("Better?", "May we trust it?", "What left the house?")[place]
        assert f"{answer.mark} {answer.question} {answer.words}" in page
        assert answer.question in artifact
    assert page.index("Better?") < page.index("ash chose")


def test_what_left_is_what_the_audit_log_has_sent_trees_included(facts):
    sent = [line.entry.bytes for line in facts.lines if line.entry.direction == "sent"]
    assert sum(sent) == 611 + 14_201 + 3310
    assert night_answers(facts)[2].words == "18.1 kB in 3 messages, none of a patient."
    assert left_the_house([]).words == "Nothing."


def test_drift_is_a_reason_to_look_and_its_absence_is_not(facts):
    moved = night_answers(facts)[1]
    assert moved.mark == "!"
    assert "ne column drifted" in moved.words
    still = night_answers(replace(facts, drift=Drift((Shift("x0", 0.0, 0.05),), 0.0)))[1]
    assert "drifted" not in still.words


def test_without_a_model_the_reason_comes_first(facts):
    first, second, _ = night_answers(replace(facts, outcome=None, missed="the round was void"))
    assert first.words == "There is no new model: the round was void."
    assert second.mark == "?"


def test_a_night_of_another_study_has_sent_nothing_of_this_one(facts):
    assert night_answers(night_facts(facts.study, lines=()))[2].words == "Nothing."
