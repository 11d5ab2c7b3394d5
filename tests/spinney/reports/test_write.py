"""Reports as files in the house's own folder."""

from __future__ import annotations

import stat
from pathlib import Path

from spinney.reports.facts import NightFacts
from spinney.reports.site import site_page
from spinney.reports.write import write_round_report, write_site_report
from tests.spinney.reports.reported import AT, round_facts, texts, wood


def test_a_night_without_a_round_leaves_the_report_of_the_last_one_as_it_is(facts, tmp_path: Path):
    last = write_site_report(tmp_path, facts)
    missed = NightFacts(facts.study, "ash", 0, AT, missed="nobody opened a round")
    assert write_site_report(tmp_path, missed).name == "night-2026-03-14.html"
    assert "wood · no round" in texts(site_page(missed))
    assert "chose the federated forest" in last.read_text()


def test_a_report_is_private_and_a_re_run_replaces_it(facts, tmp_path: Path):
    path = write_site_report(tmp_path, facts)
    assert path == tmp_path / "reports" / "wood" / "round-7.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert write_site_report(tmp_path, facts) == path
    assert write_round_report(tmp_path / "c", round_facts(wood())).read_text().startswith("<!DOCTYPE html>")
