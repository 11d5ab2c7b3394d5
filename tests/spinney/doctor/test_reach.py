"""What a house has to reach, where something of it is really broken."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spinney.demo.fhir_server import DemoFhirServer
from tests.spinney.doctor.examined import DEAD, findings, healthy_house, write_site, wrong_clocks

NOBODY = 65534


@pytest.fixture
def server() -> Iterator[Callable[[timedelta], str]]:
    with wrong_clocks() as start:
        yield start


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return healthy_house(tmp_path, monkeypatch)


def test_the_trial_message_is_gone_afterwards(house: Path) -> None:
    assert findings()["exchange"][0] == "ok"
    assert [path for path in (house / "exchange").rglob("*") if path.is_file()] == []


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users of this machine can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_an_exchange_that_may_only_be_read_is_wrong(house: Path, shared: Path) -> None:
    findings()  # imports everything while the files can be read
    (house / "site.yaml").write_text(f"name: ash\nsource: {{kind: files, path: fhir}}\nexchange: {{url: {shared}}}")
    shared.chmod(0o555)
    user = os.geteuid()
    house.chmod(0o755)
    from spinney.configuration.site import read_site
    from spinney.doctor.reach import Clocks, check_exchange

    site = read_site("site.yaml")
    try:
        if user == 0:  # root may write everywhere
            os.seteuid(NOBODY)
        told = list(check_exchange(site.model_copy(update={"home": shared}), Clocks()))
    finally:
        os.seteuid(user)
    assert [one.state for one in told] == ["wrong"]
    assert "give this house the right" in told[0].words


def test_an_exchange_that_is_not_there_is_wrong(house: Path) -> None:
    (house / "exchange").rmdir()
    state, words = findings()["exchange"]
    assert (state, "does not exist" in words) == ("wrong", True)


def test_a_secret_that_is_not_set_is_named(house: Path) -> None:
    site = (house / "site.yaml").read_text().replace("{url: exchange}", "{url: exchange, secrets: {key: WOOD_KEY}}")
    (house / "site.yaml").write_text(site)
    assert "WOOD_KEY" in findings()["exchange"][1]


def test_a_house_that_can_write_under_anothers_name_is_warned(house: Path) -> None:
    (house / "exchange/wood/beech/1").mkdir(parents=True)
    state, words = findings()["rights"]
    assert (state, "write as beech" in words) == ("warning", True)
    assert [path for path in (house / "exchange").rglob("*") if path.is_file()] == []


def test_a_house_that_can_write_under_its_own_name_only_is_fine(house: Path) -> None:
    (house / "exchange/wood/beech").mkdir(parents=True)
    (house / "exchange/wood/beech/0").write_text("in the way, as a right that is not given would be")
    assert findings()["rights"] == ("ok", "can't write as beech")


def test_servers_that_are_dead_are_named_with_what_to_look_at(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_site(house, f"{{kind: fhir-rest, base_url: '{DEAD}/fhir'}}", registry=f"{{tracking: '{DEAD}'}}")
    monkeypatch.setenv("PREFECT_API_URL", f"{DEAD}/api")
    told = findings()
    assert {check: told[check][0] for check in ("prefect", "source", "registry")} == dict.fromkeys(
        ("prefect", "source", "registry"), "wrong"
    )
    assert "PREFECT_API_URL" in told["prefect"][1]
    assert "registry.tracking" in told["registry"][1]


def test_a_fhir_server_that_answers_is_fine(house: Path) -> None:
    with DemoFhirServer(house / "fhir") as server:
        write_site(house, f"{{kind: fhir-rest, base_url: '{server.base_url}'}}")
        assert findings()["source"][0] == "ok"


def test_a_database_that_is_not_there_is_wrong(house: Path) -> None:
    write_site(house, "{kind: sql, url: 'sqlite:///gone.sqlite', table: 'SELECT 1'}")
    state, words = findings()["source"]
    assert (state, "is not there" in words) == ("wrong", True)


def test_a_registry_that_is_no_database_is_wrong(house: Path) -> None:
    (house / "home/registry").mkdir()
    (house / "home/registry/mlflow.db").write_text("no database")
    assert findings()["registry"][0] == "wrong"


def test_a_clock_that_is_an_hour_off_is_wrong(house: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (house / "site.yaml").write_text("name: ash\nhome: home\nsource: {kind: files, path: fhir}")
    monkeypatch.setenv("PREFECT_API_URL", f"{server(timedelta(hours=1))}/api")
    state, words = findings()["clock"]
    assert (state, "behind Prefect; set this machine's clock" in words) == ("wrong", True)


def test_nobody_who_tells_the_time_is_a_warning(house: Path) -> None:
    (house / "site.yaml").write_text("name: ash\nhome: home\nsource: {kind: files, path: fhir}")
    assert findings()["clock"][0] == "warning"
