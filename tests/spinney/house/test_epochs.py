"""Nights of an epoch between houses: what is kept, what leaves, and what a kill or a lost file costs."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village
from spinney.federation.epochs import Release
from spinney.federation.messages import Manifest, Weights
from spinney.house.audit import Audit
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.epochs import Epochs, read_release, written_release
from spinney.house.rounds import CoordinatorSession, SiteSession
from spinney.house.site_night import RoundResult
from spinney.storage.files import StateDamaged
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.federations import breast_study, breast_village, cohorts_of
from tests.nights import coordinator_night, others, site_night

SITES = ("ash", "birch", "cedar", "elm")
EARLY = SITES[:3]
TELLING = {"Description", "GrownForest", "Verdict", "MaskedCounts", "Signature", "ReleasedSeed"}


class PowerCut(BaseException):
    """The machine is off."""


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Village:
    """One of four sites was out when the epoch opened: it had too few patients."""
    village = breast_village(tmp_path_factory.mktemp("first"), SITES)
    table = read_site(village.site_file("elm")).source.table
    rows = table.read_text()
    table.write_text("".join(rows.splitlines(keepends=True)[:12]))
    with others(village) as running:
        result = running[COORDINATOR].result()
    assert {*result["absent"]} == {"elm"}
    table.write_text(rows)
    return village


@pytest.fixture
def village(first_night: Village, tmp_path: Path) -> Village:
    """The morning after: copies of the houses, with the same tables."""
    shutil.copytree(first_night.folder, tmp_path / "village")
    return replace(first_night, folder=tmp_path / "village")


def kinds(village: Village, house: str, number: int) -> set[str]:
    """What a house sent in a round."""
    lines = Audit(village.home(house) / "audit.jsonl").lines()
    return {line.entry.kind for line in lines if (line.entry.direction, line.entry.round) == ("sent", number)}


def expected(village: Village) -> dict[str, str]:
    """The models of the second night, computed in one process."""
    study = breast_study()
    people = cohorts_of(village, study)
    opening = simulate(study, {name: people[name] for name in EARLY})
    second = simulate(study, people, round=2, after=opening)
    return {name: outcome.model.digest for name, outcome in second.outcomes.items()}


def models(parts: dict[str, RoundResult]) -> dict[str, str]:
    return {name: part.require().model.digest for name, part in parts.items()}


def second_night(village: Village, *without: str) -> tuple[dict[str, Any], dict[str, RoundResult]]:
    with others(village, *without) as running:
        ended = {name: one.result() for name, one in running.items()}
    return ended.pop(COORDINATOR, {}), ended


def test_the_night_after_the_opening_gives_the_models_of_the_simulation_and_tells_nothing_new(village: Village) -> None:
    result, parts = second_night(village)
    assert (result["round"], result["epoch"], result["void"], result["absent"]) == (2, 1, "", {})
    assert models(parts) == expected(village)
    assert {part.epoch for part in parts.values()} == {1}
    for name in SITES:
        assert TELLING & kinds(village, name, 1) == (TELLING if name in EARLY else set())
        assert kinds(village, name, 2) == {"Resumed", "Done", *({"Lent", "Parcel"} if name in EARLY else ())}


@pytest.mark.parametrize("step", ["resume", "lend", "finish"])
def test_a_site_that_is_killed_within_the_epoch_goes_on_to_the_same_model(
    village: Village, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, off = SiteSession._answered, threading.Event()

    def killed_once(session: SiteSession, ask: Any, order: Any) -> Any:
        message = answered(session, ask, order)
        if (session.channel.me, ask.step) == ("ash", step) and not off.is_set():
            off.set()
            raise PowerCut
        return message

    monkeypatch.setattr(SiteSession, "_answered", killed_once)
    with others(village, "ash") as running:
        with pytest.raises(PowerCut):
            site_night(village, "ash")
        ash = site_night(village, "ash")
        parts = {name: one.result() for name, one in running.items() if name != COORDINATOR}
    assert models({**parts, "ash": ash}) == expected(village)


@pytest.mark.parametrize("step", ["resume", "lend", "finish"])
def test_a_coordinator_that_is_killed_within_the_epoch_goes_on_to_the_same_models(
    village: Village, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies, off = CoordinatorSession._replies, threading.Event()

    def killed_once(session: CoordinatorSession, asked: str, *rest: Any) -> Any:
        found = replies(session, asked, *rest)
        if asked == step and not off.is_set():
            off.set()
            raise PowerCut
        return found

    monkeypatch.setattr(CoordinatorSession, "_replies", killed_once)
    with others(village, COORDINATOR) as running:
        with pytest.raises(PowerCut):
            coordinator_night(village)
        coordinator_night(village)
        parts = {name: one.result() for name, one in running.items()}
    assert models(parts) == expected(village)


def test_a_site_that_has_lost_what_the_epoch_told_is_lent_it_anew(village: Village) -> None:
    shutil.rmtree(village.home("ash") / "epochs")
    _, parts = second_night(village)
    assert {*parts["ash"].require().model.owners_} >= {"ash", "birch", "cedar"}
    assert {name: digest for name, digest in models(parts).items() if name in ("birch", "cedar")} == {
        name: digest for name, digest in expected(village).items() if name in ("birch", "cedar")
    }
    assert kinds(village, "ash", 2) == {"Resumed", "Done"}


def test_the_first_round_after_the_epoch_s_nights_opens_the_next(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path / "epochs", breast_study())
    assert epochs.of_round(1) == 1
    epochs.keep(3, {"holds": "yes"})
    assert [epochs.of_round(number) for number in (3, 4, 9, 10, 11)] == [3, 3, 3, 10, 11]
    assert epochs.next_after(3) == 10


def test_an_epoch_lasts_as_long_as_the_study_says() -> None:
    def nights(**changes: Any) -> int:
        return breast_study(**changes).epoch_nights

    assert nights() == 7
    assert nights(privacy={"epoch_nights": 3}) == 3
    assert nights(algorithm={"name": "bofrf", "preset": "published"}) == 1
    assert nights(algorithm={"name": "bofrf", "preset": "published"}, privacy={"epoch_nights": 5}) == 5


def test_what_an_epoch_has_kept_counts_for_its_study_only(tmp_path: Path) -> None:
    Epochs(tmp_path / "epochs", breast_study()).keep(3, {"holds": "yes"})
    changed = Epochs(tmp_path / "epochs", breast_study(7))
    assert (changed.newest, changed.read(3), changed.of_round(4)) == (0, {}, 4)


def test_a_new_epoch_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path / "epochs", breast_study())
    epochs.keep(3, {"holds": "yes"})
    epochs.keep(10, {"holds": "yes", "lent": b"trees"})
    assert (epochs.newest, epochs.read(3), epochs.read(10)) == (10, {}, {"holds": "yes", "lent": b"trees"})
    assert [path.name for path in (tmp_path / "epochs").iterdir()] == ["10"]


def test_a_coordinator_reads_what_it_has_kept(tmp_path: Path) -> None:
    study: Study = breast_study()
    orders = {"ash": Weights(Manifest((), ()), np.empty(0)), "elm": Weights(Manifest((), ()), np.empty(0))}
    epochs = Epochs(tmp_path / "epochs", study)
    epochs.keep(1, written_release(Release("ab" * 32, orders, np.array([0.5, np.nan]))))
    again = read_release(epochs.read(1), 1)
    assert (again.model, {*again.orders}) == ("ab" * 32, {"ash", "elm"})
    assert np.array_equal(again.means, [0.5, np.nan], equal_nan=True)
    with pytest.raises(StateDamaged, match="what the epoch of round 2 has told is not in this home any more"):
        read_release(epochs.read(2), 2)


def test_a_coordinator_that_has_lost_the_epoch_opens_the_next(village: Village) -> None:
    shutil.rmtree(village.home(COORDINATOR) / "epochs")
    nights = CoordinatorNights(read_coordinator(village.coordinator_file))
    assert nights.epochs.of_round(2) == 2
    assert read_site(village.site_file("ash")).name == "ash"
