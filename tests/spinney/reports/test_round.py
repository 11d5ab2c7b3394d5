"""The coordinator's report of a round: who took part, who did not and why."""

from __future__ import annotations

from spinney.reports.round import round_page
from tests.spinney.reports.reported import round_facts, texts, wood


def test_the_coordinator_s_report_names_who_was_absent_and_why():
    words = texts(round_page(round_facts(wood())))
    assert "5 sites took part (ash, beech, cedar, elm, hornbeam); 2 did not (juniper, larch)." in words
    assert "left out: no answer to grow in time" in words
    assert "left out: fewer patients than the smallest cohort of 30" in words


def test_a_void_round_says_so():
    facts = round_facts(wood(), model="", void="2 sites are left and 3 are needed", figures={})
    assert "Round 7 is void: 2 sites are left and 3 are needed." in texts(round_page(facts))


def test_sites_that_keep_their_figures_to_themselves_are_not_asked_again():
    facts = round_facts(wood().with_settings(privacy={"share_metrics": False}), figures={})
    assert "keep their figures to themselves" in texts(round_page(facts))
