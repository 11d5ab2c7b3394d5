"""Drawings that everybody can read: without colour, and with names that stand apart."""

from __future__ import annotations

import re
from itertools import pairwise

from spinney.reports.round import round_page
from spinney.reports.site import site_page
from spinney.reports.svg import PENS, draw_map
from tests.spinney.reports.reported import round_facts, wood


def test_every_figure_has_a_name_that_says_what_is_in_it(facts):
    for made in (site_page(facts), round_page(round_facts(wood()))):
        names = re.findall(r'<svg role="img" aria-label="([^"]+)"', made)
        assert len(names) == made.count("<svg")
        assert all(len(name) > 20 for name in names)


def test_names_never_overlap_on_the_map():
    drawn = draw_map("map", {f"site-{number}": (0.0, 0.0) for number in range(8)}, [])
    levels = sorted(float(one.get("y", "0")) for one in drawn.iter("text"))
    assert min(b - a for a, b in pairwise(levels)) >= 15


def test_models_differ_without_colour():
    assert len({(pen.dash, pen.mark) for pen in PENS}) == len(PENS)
