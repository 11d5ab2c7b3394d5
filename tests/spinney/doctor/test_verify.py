"""A home is read as a whole: a sound one has no findings, and whatever is damaged is named with what mends it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spinney.configuration.house import RegistrySettings
from spinney.demo.federation import COORDINATOR, Village
from spinney.doctor.verify import verify_home
from tests.first_night import first_night_in

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    return first_night_in(tmp_path_factory.mktemp("first")).village


def test_a_sound_home_has_no_findings_and_everything_is_looked_at(village: Village) -> None:
    done = verify_home(village.home("ash"), RegistrySettings())
    assert done.damaged == []
    assert {"keys", "audit log", "studies", "rosters", "nights", "epochs", "outbox", "cohorts", "arrays", "models"} <= {
        *done.read
    }
    assert verify_home(village.home(COORDINATOR), RegistrySettings()).damaged == []


@pytest.mark.parametrize(
    ("pattern", "costs"),
    [
        ("keys/identity.pem", "takes part in nothing"),
        ("audit.jsonl", "what left the house"),
        ("studies/breast/study.yaml", "no night of this study"),
        ("studies/breast/rosters/*.json", "no round that runs with it"),
        ("nights/breast/*.json", "what came of that round"),
        ("epochs/breast/*/*.npy", "a guest until the next epoch"),
        ("outbox/breast/*/join.1", "this round"),
        ("vault/key", "pseudonyms change"),
        ("vault/cohorts/breast/*.parquet", "nothing"),
        ("vault/cohorts/breast/*.json", "nothing"),
        ("vault/cohorts/breast/*.npz", "the round that runs"),
        ("vault/grown/breast/*.npz", "own trees of that round"),
        ("registry/mlflow.db", "no model can be used"),
        ("registry/artifacts/**/forest.spny", "champion can't be used"),
        ("registry/artifacts/**/evidence.json", "champion can't be used"),
    ],
)
def test_whatever_is_cut_in_half_is_named(village: Village, tmp_path: Path, pattern: str, costs: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(village.home("ash"), home)
    path = next(iter(sorted(home.glob(pattern))))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = verify_home(home, RegistrySettings()).damaged
    assert any(costs in one.costs and one.mend for one in found), found
