"""A site's night without Prefect: the round is found, the cohort pinned, the result kept."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.encoded import write_encoded
from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.configuration.study_file import write_study
from spinney.demo.federation import COORDINATOR, Village
from spinney.errors import Declined
from spinney.house import encoding as wire
from spinney.house.approvals import Approvals
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.envelopes import Replayed
from spinney.house.round_messages import Ask, Opening
from spinney.house.rounds import SiteSession
from spinney.house.site_night import NotOpened, SiteNights
from spinney.tasks.site import patients_of
from tests.federations import breast_study, breast_village, simulated
from tests.made_up import pull_at
from tests.nights import night, others, site_night
from tests.spinney.house.houses import SITES


def test_two_nights_give_the_models_of_the_simulation(village: Village) -> None:
    for number in (1, 2):
        result, parts = night(village)
        reference = simulated(village, breast_study(), number)
        assert (result["round"], result["model"], result["void"]) == (number, reference.model_digest, "")
        for name, part in parts.items():
            assert part.outcome is not None
            assert part.outcome.model.digest == reference.outcomes[name].model.digest


class PowerCut(BaseException):
    """The machine is off."""


def test_a_site_that_was_killed_goes_on_with_the_patients_that_it_began_with(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, reply, off = simulated(village, breast_study()), SiteSession._reply, threading.Event()

    def killed_once(part: SiteSession, ask: Ask, *rest: Any) -> None:
        if (part.channel.me, ask.step) == ("ash", "score") and not off.is_set():
            off.set()
            raise PowerCut
        reply(part, ask, *rest)

    monkeypatch.setattr(SiteSession, "_reply", killed_once)
    with others(village, "ash"):
        with pytest.raises(PowerCut):
            site_night(village, "ash")
        table = read_site(village.site_file("ash")).source.table
        table.write_text("".join(table.read_text().splitlines(keepends=True)[:60]))  # meanwhile patients have gone
        part = site_night(village, "ash")
    assert part.over.model == reference.model_digest
    assert part.require().model.digest == reference.outcomes["ash"].model.digest


def test_a_site_whose_coordinator_opens_no_round_says_so(tmp_path: Path) -> None:
    village = breast_village(tmp_path, SITES, schedule={"opening_minutes": 0.01})
    with pytest.raises(NotOpened, match="coordinator has opened no round of breast"):
        SiteNights(read_site(village.site_file("ash"))).await_opening()


def test_a_site_that_was_away_waits_for_the_next_round_and_not_for_the_one_that_is_over(village: Village) -> None:
    night(village)
    ash = SiteNights(read_site(village.site_file("ash")))
    ash.rounds.folder.joinpath("newest.json").unlink()  # as if it had not been there
    assert ash._open_round(None) is None
    result, parts = night(village)
    assert result["model"] == simulated(village, breast_study(), 2).model_digest
    assert {part.number for part in parts.values()} == {2}


def change_study(village: Village, *houses: str) -> None:
    """The same study with one more tree, approved at some houses."""
    text = village.folder / "study.yaml"
    write_study(breast_study(7), text)
    for name in houses:
        Approvals(village.home(name), village.study).approve_study(text)


def test_a_site_that_was_away_when_the_study_was_still_another_waits_for_the_next_round(village: Village) -> None:
    night(village)
    change_study(village, COORDINATOR, *SITES)
    ash = SiteNights(read_site(village.site_file("ash")))
    ash.rounds.folder.joinpath("newest.json").unlink()  # as if it had not been there
    assert ash._open_round(None) is None
    result, parts = night(village)
    assert {(part.number, part.over.model) for part in parts.values()} == {(2, result["model"])}


def open_round(village: Village) -> None:
    """The coordinator says that round 1 begins, and nothing more."""
    nights = CoordinatorNights(read_coordinator(village.coordinator_file))
    channel = nights.channel(1, nights.approvals.roster)
    opening = Opening(1, nights.study.digest, nights.approvals.roster.digest, channel.key.public, 1)
    channel.publish("opening", 1, "Opening", lambda: wire.pack(opening), {})


def refusals(nights: SiteNights) -> list[str]:
    return [line.entry.kind for line in nights.audit.lines() if line.entry.direction == "refused"]


def test_a_round_of_a_study_that_nobody_here_has_approved_is_declined(village: Village) -> None:
    change_study(village, COORDINATOR)
    open_round(village)
    with pytest.raises(Declined, match="runs round 1 with a study that nobody here has approved"):
        SiteNights(read_site(village.site_file("ash"))).await_opening()


def test_a_round_that_is_opened_again_in_other_words_is_refused_and_noted(village: Village) -> None:
    site = read_site(village.site_file("ash"))
    ash = SiteNights(site)
    cohort = write_encoded(site.vault, pull_at(ash.study, site).cohort, ash.study)
    ash.rounds.enter(1, "the words that it began with")
    open_round(village)
    with pytest.raises(Replayed, match="the round was opened before with other words"):
        ash.take_part(ash.await_opening(), cohort, patients_of(site, ash.study))
    assert refusals(ash) == ["Replayed"]


def test_what_lies_in_the_place_of_an_opening_is_noted_and_told(tmp_path: Path) -> None:
    village = breast_village(tmp_path, SITES, schedule={"opening_minutes": 0.01})
    planted = village.folder / "exchange" / "breast" / COORDINATOR / "1" / "opening.1"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"noise")
    ash = SiteNights(read_site(village.site_file("ash")))
    with pytest.raises(NotOpened, match=r"what lies in its place was refused \(spinney audit show\)"):
        ash.await_opening()
    assert refusals(ash) == ["Truncated"]
