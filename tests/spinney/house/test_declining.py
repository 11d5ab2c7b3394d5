"""A site that knows that it can't take part says so; nobody waits, and nobody learns more than one word."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village
from spinney.errors import CohortRejected, Declined, SourceFailed, SpinneyError
from spinney.house.declining import DATA, GOVERNANCE, TECHNICAL, word_for
from spinney.house.site_night import SiteNights
from tests.federations import breast_village
from tests.nights import others

PATIENCE = {"answer_minutes": 10, "opening_minutes": 10}


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (CohortRejected("at least 20 training patients", 7), DATA),
        (SourceFailed("no answer from the database"), TECHNICAL),
        (Declined("ash is not in the roster"), GOVERNANCE),
        (SpinneyError("KeyError at some place"), TECHNICAL),
    ],
)
def test_the_coordinator_hears_one_word_of_three(reason: SpinneyError, word: str) -> None:
    assert word_for(reason) == word


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return breast_village(tmp_path, ("ash", "birch", "cedar", "elder"), trees=3, schedule=PATIENCE)


def test_nobody_waits_for_a_site_that_has_said_no(village: Village) -> None:
    nights, began = SiteNights(read_site(village.site_file("ash"))), time.monotonic()
    with ThreadPoolExecutor(1) as pool, nights.alone():
        no = pool.submit(nights.decline, CohortRejected("at least 20 training patients", 7))
        with others(village, "ash") as running:
            result = running[COORDINATOR].result()
            assert no.result() == DATA
    assert time.monotonic() - began < 300, "half of what the coordinator would have waited"
    assert (result["absent"], result["sites"], result["void"]) == ({"ash": DATA}, ["birch", "cedar", "elder"], "")
    sealed = [path.read_bytes() for path in (village.folder / "exchange").rglob("*") if path.is_file()]
    assert not any(b"training patients" in one for one in sealed)
    assert nights.rounds.unfinished is None
    assert not list(village.home("ash").glob("keys/rounds/**/*.key"))
    sent = [line.entry.kind for line in nights.audit.lines() if line.entry.direction == "sent"]
    assert sent == ["Decline"]
    with others(village) as running:  # the next night it is there again
        assert running[COORDINATOR].result()["absent"] == {}
