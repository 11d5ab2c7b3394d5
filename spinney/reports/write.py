"""Reports that people look at: one self-contained HTML file per night and house, in the house's own folder."""

from __future__ import annotations

from pathlib import Path

from spinney.reports.facts import NightFacts, RoundFacts
from spinney.reports.round import round_page
from spinney.reports.site import site_page
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder


def write_site_report(home: Path, facts: NightFacts) -> Path:
    """Write a site's report of a night and say where it is; a re-run replaces it. Without a round it has a date."""
    name = f"round-{facts.round}" if facts.round else f"night-{facts.at:%Y-%m-%d}"
    return _written(home, facts.study.name, name, site_page(facts))


def write_round_report(home: Path, facts: RoundFacts) -> Path:
    """Write the coordinator's report of a round and say where it is; a re-run replaces it."""
    return _written(home, facts.study.name, f"round-{facts.round}", round_page(facts))


def _written(home: Path, study: str, name: str, content: str) -> Path:
    path = private_folder(home / "reports" / study) / f"{name}.html"
    write_whole(path, content.encode())
    return path
