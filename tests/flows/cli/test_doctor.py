"""spinney doctor, on houses where something is really broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.spinney.doctor.examined import findings, healthy_house, spinney, write_site, wrong_clocks


@pytest.fixture
def server() -> Iterator[Callable[[timedelta], str]]:
    with wrong_clocks() as start:
        yield start


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return healthy_house(tmp_path, monkeypatch)


def test_a_healthy_site_has_one_line_per_check_and_exit_code_0(house: Path, server: Any, monkeypatch: Any) -> None:
    write_site(house, registry=f"{{tracking: '{server()}'}}")
    monkeypatch.setenv("PREFECT_API_URL", f"{server()}/api")
    answer = spinney("doctor", "--least-gib", "0")
    assert answer.exit_code == 0, answer.output
    checks = [
        "python",
        "versions",
        "plugins",
        "compiled",
        "settings",
        "home",
        "keys",
        "permits",
        "disk",
        "prefect",
        "prefect login",
    ]
    checks += ["exchange", "rights", "source", "registry", "mlflow login", "clock"]
    lines = answer.stdout.splitlines()
    assert [(line[:8].strip(), line[9:22].strip()) for line in lines] == [("ok", check) for check in checks]


def test_a_coordinator_is_looked_at_without_source_and_registry(house: Path) -> None:
    (house / "coordinator.yaml").write_text("name: oak\nhome: oak\nexchange: {url: exchange}")
    told = findings("--coordinator", "coordinator.yaml")
    assert told["settings"] == ("ok", "coordinator.yaml, oak")
    assert {"source", "registry"}.isdisjoint(told)
    assert told["keys"][0] == "warning"


def test_without_a_house_only_the_machine_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = spinney("doctor")
    assert answer.exit_code == 0
    assert "make one: spinney site init" in answer.stdout


def test_a_mistake_in_the_settings_is_a_finding_with_its_line(house: Path) -> None:
    (house / "site.yaml").write_text("name: ash\nsauce: {kind: files}")
    assert spinney("doctor").exit_code == 2
    state, words = findings()["settings"]
    assert state == "wrong"
    assert "site.yaml:2 sauce" in words
