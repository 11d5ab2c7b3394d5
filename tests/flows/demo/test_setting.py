"""The world in a folder: made once, finished if somebody was interrupted, and never over something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinney.cohort.vault import Vault
from spinney.flows.demo.setting import FORMS, LOCK, LOG, MARK, NotOurs, World, found_world, refuse_strangers
from spinney.house.approvals import Approvals
from spinney.storage.private import private_folder


def quiet(_words: str) -> None:
    """Nobody is told."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("demo") / "world", patients=240)
    found_world(made, quiet)
    return made


def test_four_hospitals_and_a_coordinator_have_joined_each_other(world: World):
    assert len(world.houses) == 5
    for house in world.houses:
        assert Approvals(world.village.home(house), world.village.study).roster.sites == list(world.village.sites)


def test_every_form_of_data_has_a_hospital(world: World):
    assert [world.form(site) for site in world.village.sites] == list(FORMS)


def test_found_again_it_is_the_same_world(world: World):
    before = {path: path.read_bytes() for path in world.folder.rglob("identity.pem")}
    found_world(world, lambda words: pytest.fail(words))
    assert {path: path.read_bytes() for path in world.folder.rglob("identity.pem")} == before
    assert len(before) == 5


def test_one_that_was_interrupted_while_it_was_made_is_made_anew(tmp_path: Path):
    world = World(tmp_path / "world", patients=240)
    private_folder(world.folder)
    (world.folder / MARK).write_text(json.dumps({"patients": 240, "seed": 2}))
    (world.folder / "half a house").mkdir()
    told: list[str] = []
    found_world(world, told.append)
    assert len(told) == 1
    assert not (world.folder / "half a house").exists()


def test_a_world_of_other_patients_is_left_alone(world: World):
    with pytest.raises(NotOurs, match="a world of 240 patients; use another folder"):
        found_world(World(world.folder, patients=480), quiet)


@pytest.mark.parametrize(
    ("names", "ours"), [([], True), ([LOCK, LOG], True), (["thesis.docx"], False), ([MARK, "x"], True)]
)
def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path, names: list[str], ours: bool):
    for name in names:
        (tmp_path / name).touch()
    if ours:
        refuse_strangers(tmp_path)
    else:
        with pytest.raises(NotOurs, match="holds something else"):
            refuse_strangers(tmp_path)
    refuse_strangers(tmp_path / "nowhere")


def test_two_worlds_deal_the_same_patients_into_the_same_parts(world: World, tmp_path: Path):
    other = World(tmp_path / "other", patients=240)
    found_world(other, quiet)
    for site in world.village.sites:
        one, two = (Vault(made.village.home(site)).key for made in (world, other))
        assert one == two


def test_a_night_is_done_when_every_house_has_written_down_what_came_of_it(tmp_path: Path):
    world = World(tmp_path, patients=240)
    for house in world.houses:
        assert not world.is_done(1)
        nights = world.village.home(house) / "nights" / world.village.study
        nights.mkdir(parents=True)
        (nights / "1.json").write_text('{"round": 1}')
    assert world.is_done(1)
    assert not world.is_done(2)
