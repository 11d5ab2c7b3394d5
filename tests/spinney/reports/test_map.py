"""Who is like whom, on the map of a round."""

from __future__ import annotations

import re

from spinney.reports.round import round_page
from spinney.reports.site import site_page
from tests.spinney.reports.reported import night_facts, round_facts, texts, wood


def test_a_site_s_report_has_the_map_of_all_sites_and_no_other_site_s_vector(facts):
    page = site_page(facts)
    assert "Map of 6 sites by their characteristic vectors. One cluster, all learn together: ash, beech" in page
    assert re.search(r'<text [^>]*font-weight="bold"[^>]*>ash<', page)
    shown = re.search(r"Two dimensions show (\d+)% of the spread, so distances are approximate", texts(page))
    assert 50 < int(shown[1]) <= 100
    assert texts(page).count("told about itself") == 1  # by ash


def test_a_study_may_keep_the_map_with_the_coordinator(facts):
    quiet = facts.study.with_settings(privacy={"share_map": False})
    page = site_page(night_facts(quiet))
    assert "whose report has the map of all sites" in texts(page)
    assert "Map of" not in page


def test_clusters_have_letters_on_the_map():
    facts = round_facts(wood(algorithm={"name": "bofrf", "clusters": 2}))
    assert len(facts.clusters) == 2
    words = texts(round_page(facts))
    assert "Cluster A:" in words
    assert "Cluster B:" in words
