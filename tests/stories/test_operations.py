"""What docs/operations.md promises about bad days, rehearsed: every loss is followed by a night that succeeds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spinney.configuration.site import read_site
from spinney.configuration.study_file import write_study
from spinney.connectors.mlflow import Registry
from spinney.demo.federation import COORDINATOR, Village
from spinney.flows.cli import main
from spinney.house.audit import Audit
from tests.federations import breast_study, breast_village, registered, simulated
from tests.nights import others
from tests.places import ROOT

PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
SITES = ("ash", "birch", "cedar")


@pytest.fixture
def village(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Village:
    made = breast_village(tmp_path, SITES)
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("PREFECT_API_URL", "")
    return made


def night(village: Village) -> dict[str, Any]:
    """A whole night; what came of it at the coordinator."""
    with others(village) as running:
        result: dict[str, Any] = running[COORDINATOR].result()
        assert all(running[site].result() for site in village.sites)
    return result


def spinney(line: str) -> str:
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.stdout


def backup(village: Village, name: str) -> Path:
    """As the page writes it, but for the encryption."""
    command = re.search(r"^(tar .*) \| gpg", PAGE, re.MULTILINE)
    assert command is not None
    archive = village.folder / f"{name}.tar"
    with archive.open("wb") as file:
        subprocess.run(command[1], shell=True, check=True, cwd=village.home(name).parent, stdout=file)
    return archive


def restore(village: Village, name: str, archive: Path) -> None:
    shutil.rmtree(village.home(name))
    subprocess.run(["tar", "-xf", archive], check=True, cwd=village.home(name).parent)


def test_a_backup_holds_no_round_keys_and_brings_a_house_back(village: Village) -> None:
    night(village)
    archive = backup(village, "ash")
    kept = subprocess.run(["tar", "-tf", archive], check=True, capture_output=True, text=True).stdout
    assert "home/keys/identity.pem" in kept
    assert "keys/rounds" not in kept
    restore(village, "ash", archive)
    spinney("audit verify --site ash/site.yaml")
    spinney("doctor --site ash/site.yaml")
    result = night(village)
    assert (result["round"], result["sites"]) == (2, list(SITES))
    assert result["model"] == simulated(village, breast_study(), 2).model_digest


def test_a_house_from_an_old_backup_answers_no_round_twice(village: Village) -> None:
    archive = backup(village, "ash")
    night(village)
    restore(village, "ash", archive)
    result = night(village)
    assert (result["round"], result["sites"], result["void"]) == (2, list(SITES), "")


def test_a_coordinator_from_an_old_backup_goes_on_with_the_next_round(village: Village) -> None:
    archive = backup(village, COORDINATOR)
    night(village)
    restore(village, COORDINATOR, archive)
    result = night(village)
    assert (result["round"], result["sites"], result["void"]) == (2, list(SITES), "")


def test_an_exchange_that_was_lost_is_replaced_by_an_empty_one(village: Village) -> None:
    night(village)
    shutil.rmtree(village.folder / "exchange")
    (village.folder / "exchange").mkdir()
    result = night(village)
    assert (result["round"], result["sites"], result["void"]) == (2, list(SITES), "")


def test_a_site_that_lost_its_home_joins_again_and_is_there_at_night(village: Village) -> None:
    first = night(village)
    shutil.rmtree(village.home("ash"))
    host, ash = "--coordinator coordinator/coordinator.yaml", "--site ash/site.yaml"
    spinney(f"coordinator dismiss ash --yes {host}")
    spinney(f"coordinator invite ash {host}")
    spinney(f"site join invite-ash.json {ash}")
    spinney(f"site approve breast --yes {ash}")
    spinney(f"coordinator admit joining.json --yes {host}")
    for site in SITES:
        spinney(f"site approve-roster --yes --site {site}/site.yaml")
    result = night(village)
    assert (result["round"], result["sites"], result["void"]) == (2, list(SITES), "")
    assert first["round"] == 1


def test_a_coordinator_that_lost_its_home_founds_the_study_anew_and_sites_keep_their_models(village: Village) -> None:
    with others(village) as running:
        part = running["ash"].result()
    registered(village, "ash", part, "auto")
    shutil.rmtree(village.home(COORDINATOR))
    write_study(breast_study(name="breast-2"), village.folder / "again.yaml")
    host = "--coordinator coordinator/coordinator.yaml"
    spinney("keys new --home coordinator/home")
    spinney(f"coordinator approve again.yaml --yes {host}")
    for site in SITES:
        spinney(f"coordinator invite {site} {host} -o {site}.json")
        spinney(f"site join {site}.json --site {site}/site.yaml -o joining-{site}.json")
        spinney(f"site approve breast-2 --yes --site {site}/site.yaml")
        spinney(f"coordinator admit joining-{site}.json --yes {host}")
    for site in SITES:
        spinney(f"site approve-roster --study breast-2 --yes --site {site}/site.yaml")
    known = json.loads(spinney("site studies --json --site ash/site.yaml"))
    assert {one["study"]: one["problem"] for one in known} == {"breast": "", "breast-2": ""}
    ash = read_site(village.site_file("ash"))
    assert [one.number for one in Registry(ash.home, ash.registry).versions("breast")] == [1]
    assert Audit(ash.home / "audit.jsonl").verify().notes == ()
