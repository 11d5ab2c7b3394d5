"""The reports in a real browser, from disk, on a desk and on a telephone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.reports.facts import NightFacts
from spinney.reports.write import write_round_report, write_site_report
from tests.servers.chromium import Browser, chromium, executable
from tests.spinney.reports.reported import AT, night_facts, round_facts, wood

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(executable() is None, reason="needs Chromium; install what packages.txt names"),
]
PAGES = ("site", "empty", "round")
WIDTHS = (1280, 360)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home, study = tmp_path_factory.mktemp("homes"), wood(algorithm={"name": "bofrf", "clusters": 2})
    return {
        "site": write_site_report(home / "site", night_facts(study)),
        "empty": write_site_report(home / "empty", NightFacts(study, "ash", 8, AT, missed="nobody opened a round")),
        "round": write_round_report(home / "round", round_facts(study)),
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_the_width_and_asks_for_nothing_but_itself(browser, pages, name, width):
    browser.show(pages[name], width)
    assert browser.content_width <= width
    assert browser.requests == [pages[name].as_uri()]


@pytest.mark.parametrize("name", ["site", "round"])
def test_a_screen_reader_gets_a_name_for_every_figure(browser, pages, name):
    browser.show(pages[name], WIDTHS[0])
    names = browser.named("image")
    assert len(names) == pages[name].read_text().count("<svg") > 1
    assert all(len(one) > 20 for one in names)


def test_a_page_can_be_printed(browser, pages):
    browser.show(pages["site"], WIDTHS[0])
    assert browser.printed().startswith(b"%PDF")
