"""A site's report of one night, as its people read it."""

from __future__ import annotations

from dataclasses import replace

from spinney.choice.outcome import Newest
from spinney.reports.facts import NightFacts, Standing
from spinney.reports.site import site_page
from tests.spinney.reports.reported import AT, night_facts, texts, watch, wood


def test_a_night_without_a_model_says_so_and_why(facts):
    missed = NightFacts(
        facts.study, "ash", 7, AT, missed="2 sites are left and 3 are needed", standing=Standing("", "3")
    )
    words = texts(site_page(missed))
    assert "There is no new model tonight; ash keeps version 3. The reason: 2 sites are left and 3 are needed." in words
    assert "Nothing left this house tonight." in words


def test_too_few_test_patients_give_no_curve_and_a_note():
    small = night_facts(wood(choice={"fewest_test_patients": 500}))
    words = texts(site_page(small))
    assert "too few for figures" in words
    assert "ROC curves" not in words


def test_groups_of_patients_are_shown_and_small_ones_only_named(facts):
    words = texts(site_page(facts))
    assert "sex: female 110 0.90 (0.84 to 0.95) 50% 51%" in words
    assert "Too few test patients to tell: age: 80 and over." in words
    assert site_page(facts).count("age: 65 to 79") >= 3  # name of the drawing, the drawing, the table


def test_the_newest_patients_stand_beside_the_random_ones(facts):
    assert "AUROC 0.88 (0.80 to 0.93) 0." in texts(site_page(facts))


def test_why_no_newest_events_were_kept_aside_is_told(facts):
    few = replace(facts.outcome, newest=Newest(0.0, {}, "the rows have no index times"))
    words = texts(site_page(replace(facts, outcome=few)))
    assert "No newest index events were kept aside: the rows have no index times." in words


def test_the_report_says_how_candidates_were_compared(facts):
    assert "Chosen by 3-fold cross-validation, repeated 10 times with other folds." in texts(site_page(facts))


def test_a_champion_below_its_promise_wishes_a_round(facts):
    assert "A round with new data is wished" not in site_page(night_facts(facts.study, watch=watch(0.005)))
    words = texts(site_page(facts))
    assert "A round with new data is wished: version 3 is below its promise: AUROC 0.78 (0.72 to 0.83)" in words
