"""spinney coordinator: whom it admits, whose key it changes, and what it says of its roster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinney.house.approvals import Approvals
from spinney.house.keys import KEY_VARIABLE
from tests.flows.cli.joining import STUDY, done, found_wood, joined, refused


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path


@pytest.fixture
def wood(folder: Path) -> Path:
    return found_wood(folder)


def test_nobody_is_admitted_without_an_invite(wood: Path) -> None:
    done("site join invite-ash.json --site ash/site.yaml")
    (Approvals(wood / "oak/home", "wood").folder / "invites/ash.json").unlink()
    assert "was not invited" in refused("coordinator admit joining.json --coordinator oak/coordinator.yaml")


def test_scripts_read_roster_and_studies_as_json(wood: Path) -> None:
    joined(wood)
    roster = json.loads(done("coordinator roster --json --coordinator oak/coordinator.yaml"))
    assert (roster["version"], roster["in_force"], roster["approved"]) == (2, 2, {"2": ["ash"]})
    (study,) = json.loads(done("site studies --json --site ash/site.yaml"))
    assert (study["study"], study["by"], study["roster"], study["problem"]) == ("wood", "officer", 2, "")


def test_a_rotation_that_nobody_knows_is_refused(wood: Path) -> None:
    joined(wood)
    done("keys new --home elsewhere")
    done("keys rotate --home elsewhere")
    assert "nobody's" in refused("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")


def test_a_rotation_is_put_on_the_roster_once(wood: Path) -> None:
    joined(wood)
    done("keys rotate --home ash/home")
    done("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")
    assert "nobody's" in refused("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")


def test_a_coordinator_whose_exchange_is_missing_goes_on_when_it_is_there(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY)
    message = refused("coordinator init --name oak --exchange exchange --study study.yaml")
    assert len(message.splitlines()) == 1
    (folder / "exchange").mkdir()
    done("coordinator approve study.yaml")
    assert "version 1" in done("coordinator roster")
