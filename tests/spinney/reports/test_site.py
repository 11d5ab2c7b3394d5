"""Reports that people look at: what they say, and that they need nothing but themselves."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from spinney.choice.outcome import Newest
from spinney.reports.facts import NightFacts, Standing, steps_in
from spinney.reports.html import el, page, size, table
from spinney.reports.round import round_page
from spinney.reports.site import site_page
from spinney.reports.svg import PENS, draw_map
from spinney.reports.words import comparison_rows, credit_rows, decided, night_figures, night_markdown, round_markdown
from spinney.reports.write import write_round_report, write_site_report
from tests.spinney.reports.reported import AT, SITES, night_facts, round_facts, watch, wood


@pytest.fixture(scope="module")
def facts() -> NightFacts:
    return night_facts(wood())


def texts(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL))


def test_a_page_loads_nothing_and_runs_nothing(facts):
    for made in (site_page(facts), round_page(round_facts(wood()))):
        assert "<script" not in made
        assert not re.search(r"(src|href|action)=", made)
        assert "url(http" not in made
        assert "@import" not in made
        assert "default-src 'none'" in made


def test_every_figure_has_a_name_that_says_what_is_in_it(facts):
    for made in (site_page(facts), round_page(round_facts(wood()))):
        names = re.findall(r'<svg role="img" aria-label="([^"]+)"', made)
        assert len(names) == made.count("<svg")
        assert all(len(name) > 20 for name in names)


def test_the_top_says_in_two_sentences_what_was_decided_and_why(facts):
    what, why = decided(facts)
    assert what.startswith("ash chose the federated forest (BOFRF)")
    assert what.endswith("in use from now on as version 4.")
    assert why.startswith("The reason: federated is the default")
    assert f"{what} {why}" in texts(site_page(facts))


def test_a_night_without_a_model_says_so_and_why(facts):
    missed = NightFacts(
        facts.study, "ash", 7, AT, missed="2 sites are left and 3 are needed", standing=Standing("", "3")
    )
    words = texts(site_page(missed))
    assert "There is no new model tonight; ash keeps version 3. The reason: 2 sites are left and 3 are needed." in words
    assert "Nothing left this house tonight." in words


def test_a_night_without_a_round_leaves_the_report_of_the_last_one_as_it_is(facts, tmp_path: Path):
    last = write_site_report(tmp_path, facts)
    missed = NightFacts(facts.study, "ash", 0, AT, missed="nobody opened a round")
    assert write_site_report(tmp_path, missed).name == "night-2026-03-14.html"
    assert "wood · no round" in texts(site_page(missed))
    assert "chose the federated forest" in last.read_text()


def test_a_champion_that_stays_is_named(facts):
    what, _ = decided(night_facts(facts.study, standing=Standing("5", "4", "the candidate is worse beyond noise")))
    assert what.endswith("registered as version 5 while version 4 stays in use.")


def test_too_few_test_patients_give_no_curve_and_a_note():
    small = night_facts(wood(choice={"fewest_test_patients": 500}))
    words = texts(site_page(small))
    assert "too few for figures" in words
    assert "ROC curves" not in words


def test_local_and_federated_stand_side_by_side_with_intervals(facts):
    rows = comparison_rows(facts.outcome)
    assert {"local forest", "federated forest (BOFRF)", "chosen model"} <= {row["model"] for row in rows}
    assert re.fullmatch(r"0\.\d\d \(0\.\d\d to [01]\.\d\d\)", rows[0]["AUROC"])
    words = texts(site_page(facts))
    assert all(name in words for name in ("ROC curves", "Precision-recall curves", "Calibration curves"))


def test_the_champion_that_it_was_held_against_is_named(facts):
    _, why = decided(facts)
    assert "held against version 3, it is not worse beyond noise" in why
    assert "+0.012 (-0.008 to +0.030)" in night_markdown(facts)


def test_groups_of_patients_are_shown_and_small_ones_only_named(facts):
    words = texts(site_page(facts))
    assert "sex: female 110 0.90 (0.84 to 0.95) 50% 51%" in words
    assert "Too few test patients to tell: age: 80 and over." in words
    assert site_page(facts).count("age: 65 to 79") >= 3  # name of the drawing, the drawing, the table


def test_the_newest_patients_stand_beside_the_random_ones(facts):
    assert "AUROC 0.88 (0.80 to 0.93) 0." in texts(site_page(facts))


def test_the_newest_and_the_random_patients_are_two_key_figures(facts):
    figures = {what: figure for figure, what in night_figures(facts)}
    assert figures["the same on the newest index events"] == "0.88 (0.80 to 0.93)"
    assert "the same on the newest index events" in night_markdown(facts)  # and so in Prefect's artifact


def test_why_no_newest_events_were_kept_aside_is_told(facts):
    few = replace(facts.outcome, newest=Newest(0.0, {}, "the rows have no index times"))
    words = texts(site_page(replace(facts, outcome=few)))
    assert "No newest index events were kept aside: the rows have no index times." in words


def test_the_report_says_how_candidates_were_compared(facts):
    assert "Chosen by 3-fold cross-validation, repeated 10 times with other folds." in texts(site_page(facts))


def test_credit_names_every_site_and_adds_up(facts):
    rows = credit_rows(facts.outcome)
    assert {row["site"] for row in rows} == {*SITES}
    assert sum(int(row["share of the vote"].rstrip("%")) for row in rows) == pytest.approx(100, abs=3)


def test_a_handful_of_patients_is_told_as_a_handful(facts):
    assert "died before prediction time fewer than 5" in texts(site_page(facts))


def test_what_left_the_house_is_told_as_the_audit_log_has_it(facts):
    words = texts(site_page(facts))
    assert "3 messages, 18.1 kB; lines 2 to 4 of the audit log." in words
    assert "Sent to coordinator: averages and shares per variable" in words
    assert "Received from" not in words


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


def test_a_champion_below_its_promise_wishes_a_round(facts):
    assert "A round with new data is wished" not in site_page(night_facts(facts.study, watch=watch(0.005)))
    words = texts(site_page(facts))
    assert "A round with new data is wished: version 3 is below its promise: AUROC 0.78 (0.72 to 0.83)" in words


def test_the_coordinator_s_report_names_who_was_absent_and_why():
    words = texts(round_page(round_facts(wood())))
    assert "5 sites took part (ash, beech, cedar, elm, hornbeam); 2 did not (juniper, larch)." in words
    assert "left out: no answer to grow in time" in words
    assert "left out: fewer patients than the smallest cohort of 30" in words


def test_a_void_round_says_so():
    facts = round_facts(wood(), model="", void="2 sites are left and 3 are needed", figures={})
    assert "Round 7 is void: 2 sites are left and 3 are needed." in texts(round_page(facts))


def test_clusters_have_letters_on_the_map():
    facts = round_facts(wood(algorithm={"name": "bofrf", "clusters": 2}))
    assert len(facts.clusters) == 2
    words = texts(round_page(facts))
    assert "Cluster A:" in words
    assert "Cluster B:" in words


def test_sites_that_keep_their_figures_to_themselves_are_not_asked_again():
    facts = round_facts(wood().with_settings(privacy={"share_metrics": False}), figures={})
    assert "keep their figures to themselves" in texts(round_page(facts))


def test_steps_are_timed_and_an_answer_that_was_read_twice_came_once():
    facts = round_facts(wood())
    grow = steps_in(facts.lines)[1]
    assert (grow.name, grow.answers, grow.bytes, grow.seconds) == ("grow", 6, 900 + 6 * 1400, 42.0)
    twice = [*facts.lines[:14], *facts.lines[8:14], *facts.lines[14:]]
    assert steps_in(twice)[1].bytes == grow.bytes


def test_names_never_overlap_on_the_map():
    drawn = draw_map("map", {f"site-{number}": (0.0, 0.0) for number in range(8)}, [])
    levels = sorted(float(one.get("y", "0")) for one in drawn.iter("text"))
    assert min(b - a for a, b in pairwise(levels)) >= 15


def test_models_differ_without_colour():
    assert len({(pen.dash, pen.mark) for pen in PENS}) == len(PENS)


def test_text_can_t_become_markup():
    made = page("<b>", el("p", "a < b & c"), table(["<i>"], [["<u>"]], 'a "name"'))
    assert "<b>" not in made
    assert "<u>" not in made
    assert "a &lt; b &amp; c" in made


def test_the_key_figures_are_markdown_in_which_names_stay_names(facts):
    said = night_markdown(facts)
    assert said.startswith("# wood, round 7 at ash\n\nash chose the federated forest")
    assert "| AUROC of the local forest | 0." in said
    strange = round_facts(wood(), absent={"larch|[x](http://a)<b>": "away"})
    assert "larch\\|\\[x](http://a)\\<b>" in round_markdown(strange)


def test_a_report_is_private_and_a_re_run_replaces_it(facts, tmp_path: Path):
    path = write_site_report(tmp_path, facts)
    assert path == tmp_path / "reports" / "wood" / "round-7.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert write_site_report(tmp_path, facts) == path
    assert write_round_report(tmp_path / "c", round_facts(wood())).read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (999, "999 bytes"), (18_122, "18.1 kB"), (2.5e9, "2.5 GB")]
)
def test_bytes_are_told_as_people_say_them(count, words):
    assert size(count) == words


def test_elements_keep_the_order_of_texts_and_children():
    made: Element = el("p", "one ", el("b", "two"), " three", None, class_="x", data_n=1.5)
    assert "".join(made.itertext()) == "one two three"
    assert made.attrib == {"class": "x", "data-n": "1.5"}
