"""A page is one file that loads nothing, and no text in it becomes markup."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

import pytest

from spinney.reports.html import el, page, size, table
from spinney.reports.round import round_page
from spinney.reports.site import site_page
from tests.spinney.reports.reported import round_facts, wood


def test_a_page_loads_nothing_and_runs_nothing(facts):
    for made in (site_page(facts), round_page(round_facts(wood()))):
        assert "<script" not in made
        assert not re.search(r"(src|href|action)=", made)
        assert "url(http" not in made
        assert "@import" not in made
        assert "default-src 'none'" in made


def test_text_can_t_become_markup():
    made = page("<b>", el("p", "a < b & c"), table(["<i>"], [["<u>"]], 'a "name"'))
    assert "<b>" not in made
    assert "<u>" not in made
    assert "a &lt; b &amp; c" in made


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (999, "999 bytes"), (18_122, "18.1 kB"), (2.5e9, "2.5 GB")]
)
def test_bytes_are_told_as_people_say_them(count, words):
    assert size(count) == words


def test_elements_keep_the_order_of_texts_and_children():
    made: Element = el("p", "one ", el("b", "two"), " three", None, class_="x", data_n=1.5)
    assert "".join(made.itertext()) == "one two three"
    assert made.attrib == {"class": "x", "data-n": "1.5"}
