"""Every file that a house keeps stands in the table of docs/home.md, and is closed to others."""

from __future__ import annotations

import os
import re
import stat

import pytest
import yaml

from spinney.cohort.check_result import check_cohort
from spinney.cohort.pull_report import PullReport
from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village
from spinney.house.site_night import SiteNights
from spinney.reports.gather import site_facts
from spinney.reports.write import write_site_report
from spinney.tasks.site import score_night_of
from tests.federations import breast_village, registered
from tests.nights import others
from tests.places import ROOT
from tests.servers.migrated import registry_in

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

WORDS = {"STUDY": "[^/]+", "NUMBER": r"\d+", "NAME": "[^/]+", "COHORT": "[^/]+", "N": r"\d+", "V": r"\d+"}


def told() -> list[re.Pattern[str]]:
    """The paths of the table."""
    patterns = []
    for line in (ROOT / "docs/home.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| `"):
            continue
        paths = re.findall(r"`([^`]+)`", line.split("|")[1])
        for path in paths:
            whole = path
            if path.startswith(".") and path != ".serve.lock":
                whole = os.path.splitext(paths[0])[0] + path
            elif "/" in paths[0] and "/" not in path and path != paths[0]:
                whole = f"{paths[0].rpartition('/')[0]}/{path}"
            patterns.append(re.compile(_pattern(whole)))
    return patterns


def _pattern(path: str) -> str:
    plain = "".join(WORDS.get(word, re.escape(word)) for word in re.split(r"\b([A-Z]+)\b", path))
    return f"^{plain}" if path.endswith("/") else f"^{plain}$"


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    """Two nights, a check, a report and a morning of scores."""
    village = breast_village(tmp_path_factory.mktemp("village"), ("ash", "birch", "cedar"))
    file = village.site_file("ash")
    scores = {"scores": {"table": {"url": "sqlite:///scores.db"}}}
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **scores}))
    site = read_site(file)
    for number in (1, 2):
        with others(village) as running:
            part = running["ash"].result()
        registered(village, "ash", part, admission="not needed")
        registry_in(site.home).promote("breast", number)
        nights = SiteNights(site)
        check_cohort(site.home, nights.study, part.cohort, PullReport())
        write_site_report(site.home, site_facts(nights, part))
    scoring = score_night_of(site)
    with scoring.alone():
        scoring.apply_model(scoring.pull())
    return village


@pytest.mark.parametrize("house", ["ash", COORDINATOR])
def test_every_file_of_a_home_is_in_the_table(village: Village, house: str) -> None:
    home, known = village.home(house), told()
    files = [path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [file for file in files if not any(one.match(file) for one in known)] == []


def test_the_table_names_nothing_that_no_house_has(village: Village) -> None:
    """Rows about what these nights did not need begin in a folder that is there all the same."""
    homes = [village.home(house) for house in ("ash", COORDINATOR)]
    there = {path.relative_to(home).as_posix() for home in homes for path in home.rglob("*")}
    rare = {"predictions", ".serve.lock"}  # all outcomes of these patients are known; nobody serves them
    for one in told():
        first = re.sub(r"\\(.)", r"\1", one.pattern.lstrip("^").rstrip("$").split("/")[0])
        assert first in there | rare


def test_nothing_in_a_home_is_open_to_others(village: Village) -> None:
    for house in ("ash", "birch", COORDINATOR):
        home = village.home(house)
        mlflow = home / "registry" / "artifacts"  # MLflow's own files, behind a folder that is closed
        found = [path for path in (home, *home.rglob("*")) if mlflow not in path.parents and not path.is_symlink()]
        open_folders = [path for path in found if path.is_dir() and stat.S_IMODE(path.stat().st_mode) & 0o077]
        assert [path for path in open_folders if path != mlflow] == []
