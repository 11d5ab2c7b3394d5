"""What befalls a house between two nights, and the night after it: yesterday never stops tonight."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spinney.cohort.check_result import check_cohort
from spinney.cohort.pull_report import PullReport
from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CHAMPION, Registry, RegistryFailed
from spinney.demo.federation import Village
from spinney.house.site_night import RoundResult, SiteNights
from spinney.tasks.site import watch_of
from tests.federations import breast_table, registered
from tests.first_night import FirstNight
from tests.nights import night

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

SITES = ("ash", "birch", "cedar")


@pytest.fixture
def first(first_night: FirstNight) -> Village:
    return first_night.village


@pytest.fixture
def village(first: Village, tmp_path: Path) -> Village:
    """The same, on the next day and in another folder."""
    shutil.copytree(first.folder, tmp_path / "elsewhere")
    return Village(tmp_path / "elsewhere", first.study, first.sites)


def nights_of(village: Village) -> SiteNights:
    return SiteNights(read_site(village.site_file("ash")))


def noted(village: Village) -> list[str]:
    return [line.entry.words for line in nights_of(village).audit.lines() if line.entry.direction == "noted"]


def cohorts(village: Village) -> Path:
    return village.home("ash") / "vault" / "cohorts" / "breast"


def test_homes_in_another_folder_take_part_with_their_champion(village: Village, first: Village) -> None:
    before = {path for path in first.folder.rglob("*") if path.is_file()}
    result, parts = night(village)
    assert (result["round"], result["sites"], result["absent"]) == (2, list(SITES), {})
    outcome = parts["ash"].outcome
    assert outcome is not None
    assert outcome.succession is not None
    assert outcome.succession.champion == "1"
    registered(village, "ash", parts["ash"], admission="not needed")
    ash = read_site(village.site_file("ash"))
    assert len(Registry(ash.home, ash.registry).versions("breast")) == 2
    assert {path for path in first.folder.rglob("*") if path.is_file()} == before


def test_cohorts_in_another_folder_are_those_that_tonight_is_compared_with(village: Village) -> None:
    (ref,) = read_site(village.site_file("ash")).vault.cohorts("breast")
    assert ref.path.parent == cohorts(village)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("suffix", "harm"), [(".parquet", truncated), (".parquet", emptied), (".json", truncated), (".npz", truncated)]
)
def test_a_cohort_that_was_damaged_since_costs_nothing(
    village: Village, suffix: str, harm: Callable[[Path], None]
) -> None:
    (path,) = cohorts(village).glob(f"*{suffix}")
    harm(path)
    site, nights = read_site(village.site_file("ash")), nights_of(village)
    tonight = site.vault.write(other_rows(), nights.study, None)
    checked = check_cohort(site.home, nights.study, tonight, PullReport())
    watch_of(site, nights.study)
    told = [f"{path} is damaged, and nothing is compared with it; see: spinney house verify"]
    assert list(checked.notes) == (told if suffix == ".parquet" else [])
    assert (checked.drift is None) == (suffix != ".npz")


def other_rows() -> pa.Table:
    """Nearly the patients of yesterday."""
    return pa.table({name: column.to_list() for name, column in breast_table().iloc[3::3].items()})


@pytest.mark.parametrize("file", ["forest.spny", "evidence.json"])
def test_a_champion_that_is_damaged_is_named_and_costs_no_night(village: Village, file: str) -> None:
    (path,) = (village.home("ash") / "registry" / "artifacts").rglob(file)
    truncated(path)
    result, parts = night(village)
    assert (result["sites"], result["absent"]) == (list(SITES), {})
    assert of(parts).takes_over
    assert any(
        words.startswith("The champion can't be read, so nothing is compared with it") for words in noted(village)
    )


def test_while_nobody_knows_who_is_champion_nobody_takes_its_place(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_self: Registry, _study: str, which: object) -> None:
        assert which == CHAMPION
        raise RegistryFailed("MLflow refuses: database is locked", transient=True)

    monkeypatch.setattr(Registry, "find", away)
    _, parts = night(village)
    assert of(parts).outcome is not None
    assert not of(parts).takes_over


def of(parts: dict[str, RoundResult]) -> RoundResult:
    return parts["ash"]
