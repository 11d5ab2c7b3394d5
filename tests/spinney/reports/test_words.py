"""A night in sentences and key figures."""

from __future__ import annotations

import re

import pytest

from spinney.choice.metrics import Figure
from spinney.reports.facts import Standing
from spinney.reports.site import site_page
from spinney.reports.words import (
    comparison_rows,
    credit_rows,
    decision_words,
    night_figures,
    night_markdown,
    over_local,
    round_markdown,
)
from tests.spinney.reports.reported import SITES, night_facts, round_facts, texts, wood


def test_the_top_says_in_two_sentences_what_was_decided_and_why(facts):
    what, why = decision_words(facts)
    assert what.startswith("ash chose the federated forest (BOFRF)")
    assert what.endswith("in use from now on as version 4.")
    assert why.startswith("The reason: federated is the default")
    assert f"{what} {why}" in texts(site_page(facts))


def test_a_champion_that_stays_is_named(facts):
    what, _ = decision_words(
        night_facts(facts.study, standing=Standing("5", "4", "the candidate is worse beyond noise"))
    )
    assert what.endswith("registered as version 5 while version 4 stays in use.")


def test_local_and_federated_stand_side_by_side_with_intervals(facts):
    rows = comparison_rows(facts.outcome)
    assert {"local forest", "federated forest (BOFRF)", "chosen model"} <= {row["model"] for row in rows}
    assert re.fullmatch(r"0\.\d\d \(0\.\d\d to [01]\.\d\d\)", rows[0]["AUROC"])
    words = texts(site_page(facts))
    assert all(name in words for name in ("ROC curves", "Precision-recall curves", "Calibration curves"))


def test_the_champion_that_it_was_held_against_is_named(facts):
    _, why = decision_words(facts)
    assert "held against version 3, it is not worse beyond noise" in why
    assert "+0.012 (-0.008 to +0.030)" in night_markdown(facts)


def test_the_newest_and_the_random_patients_are_two_key_figures(facts):
    figures = {what: figure for figure, what in night_figures(facts)}
    assert figures["the same on the newest index events"] == "0.88 (0.80 to 0.93)"
    assert "the same on the newest index events" in night_markdown(facts)  # and so in Prefect's artifact


def test_credit_names_every_site_and_adds_up(facts):
    rows = credit_rows(facts.outcome)
    assert {row["site"] for row in rows} == {*SITES}
    assert sum(int(row["share of the vote"].rstrip("%")) for row in rows) == pytest.approx(100, abs=3)


def test_the_key_figures_are_markdown_in_which_names_stay_names(facts):
    said = night_markdown(facts)
    assert said.startswith("# wood, round 7 at ash\n\n- **")
    assert "\n\nash chose the federated forest" in said
    assert "| AUROC of the local forest | 0." in said
    strange = round_facts(wood(), absent={"larch|[x](http://a)<b>": "away"})
    assert "larch\\|\\[x](http://a)\\<b>" in round_markdown(strange)


def test_a_model_that_is_worse_by_a_figure_of_which_less_is_better_is_told_so():
    worse = over_local("brier", Figure(0.007, 0.001, 0.013))
    assert worse == "Worse than local by -0.007 (-0.013 to -0.001)"
    assert over_local("auroc", Figure(0.007, 0.001, 0.013)) == "Better than local by +0.007 (+0.001 to +0.013)"
    assert over_local("auprc", Figure(0.0, 0.0, 0.0)) == "As good as local"


def test_the_word_about_the_brier_score_follows_from_the_two_scores_themselves(facts):
    compared = facts.outcome.compared
    difference = compared["chosen"]["brier"].value - compared["local"]["brier"].value
    said = over_local("brier", facts.outcome.gain["brier"])
    assert said.startswith("Better" if difference < 0 else "Worse")
    assert f"{-difference:+.3f}" in said


def test_rules_that_are_kept_are_counted_and_not_those_that_are_not(facts):
    figures = {what: figure for figure, what in night_figures(facts)}
    assert figures["quality rules kept"] == "4 of 5"
