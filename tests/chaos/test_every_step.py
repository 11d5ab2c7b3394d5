"""Houses are killed in their steps and started again: the same models, to the last bit."""

from __future__ import annotations

import logging

import pytest

from spinney.demo.federation import COORDINATOR
from tests.chaos.disturbed import Disturbed
from tests.chaos.house import KILL_AT

log = logging.getLogger(__name__)


@pytest.mark.service
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("house", "place"),
    [
        ("ash", "before publish grow"),  # sealed and in the outbox, not yet published
        ("ash", "after answer score"),
        (COORDINATOR, "before keep answers-004.text"),  # the answers are there, and not yet accepted
    ],
)
def test_a_house_that_is_killed_and_started_again_gives_the_same_models(
    disturbed: Disturbed, house: str, place: str
) -> None:
    disturbed.night(house, {KILL_AT: place})


@pytest.mark.chaos
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("house", ["ash", COORDINATOR])
def test_wherever_a_house_is_killed_it_gives_the_same_models(disturbed: Disturbed, house: str) -> None:
    places = disturbed.places(house)
    wrong = []
    for number, place in enumerate(places, 1):
        try:
            disturbed.night(house, {KILL_AT: place})
            log.info("%d of %d: %s killed at %s: the same models", number, len(places), house, place)
        except AssertionError as error:
            log.error("%d of %d: %s killed at %s: %s", number, len(places), house, place, error)
            wrong.append(place)
    assert not wrong
